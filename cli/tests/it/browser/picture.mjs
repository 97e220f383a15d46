// Takes the pictures of one page, for people who judge what it tells at night.
import { join } from "node:path";
import process from "node:process";

import { open, withBrowser } from "./chromium.mjs";

const { NAME, PICTURES, URL: url } = process.env;

await withBrowser(async (browser) => {
  for (const colorScheme of ["light", "dark"]) {
    const { page } = await open(browser, url, { colorScheme, viewport: { width: 390, height: 800 } });
    await page.locator("#verdict, .lock").first().waitFor();
    await page.screenshot({ path: join(PICTURES, `${NAME}-${colorScheme}.png`), fullPage: true });
  }
});
