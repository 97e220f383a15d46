// Looks at one page as on a phone: it shows the next step of who was called. Takes the pictures for people who judge what it tells
// at night.
import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";

import { fits, open, withBrowser } from "./chromium.mjs";

const { NAME, PICTURES, STEP, URL: url } = process.env;
const WIDTH = 390;

await withBrowser(async (browser) => {
  for (const colorScheme of ["light", "dark"]) {
    const { page } = await open(browser, url, { colorScheme, viewport: { width: WIDTH, height: 800 } });
    await page.locator("#verdict, .lock").first().waitFor();
    // The step is read as a text of its own, on the first screen.
    if (STEP) {
      const step = page.getByText(STEP).first();
      // The page may put a new verdict in the place of the old one between the two.
      let box = null;
      while (!box) {
        await step.waitFor();
        box = await step.boundingBox();
      }
      assert.ok(box.y < 800, `${NAME}: the next step is at ${box.y}`);
    }
    assert.ok(await fits(page, WIDTH), `${NAME}: it is wider than a phone`);
    if (PICTURES) await page.screenshot({ path: join(PICTURES, `${NAME}-${colorScheme}.png`), fullPage: true });
  }
});
