// Takes the pictures of docs/command-line.md.
import { join } from "node:path";
import process from "node:process";

import { open, withBrowser } from "./chromium.mjs";

const { BOARD_URL, FOLLOWER_URL, LEADER_URL, SCREENSHOTS } = process.env;

// The pictures show a place that readers know, in place of the directory of this test.
const anywhere = (page) => page.evaluate(() => {
  const place = document.querySelector(".lock bdi");
  place.textContent = place.textContent.replace(/^file:.*\/locks\//, "s3://shop/locks/");
});

async function shoot(browser, name, url, { colorScheme, width, height }, ready) {
  const { page } = await open(browser, url, { colorScheme, viewport: { width, height } });
  await page.locator("body", { hasText: ready }).waitFor();
  await anywhere(page);
  await page.screenshot({ path: join(SCREENSHOTS, `looking-${name}.png`) });
}

await withBrowser(async (browser) => {
  const wide = { width: 820, height: 560 };
  const board = /1 in trouble, 3 led, 1 free\./;
  await shoot(browser, "dashboard-light", BOARD_URL, { ...wide, colorScheme: "light", height: 440 }, board);
  await shoot(browser, "dashboard-dark", BOARD_URL, { ...wide, colorScheme: "dark", height: 440 }, board);
  await shoot(browser, "dashboard-phone", BOARD_URL, { width: 390, height: 640, colorScheme: "light" }, board);
  await shoot(browser, "status-light", LEADER_URL, { ...wide, colorScheme: "light", height: 1330 }, /leads\. That is this candidate/);
  await shoot(browser, "status-dark", FOLLOWER_URL, { ...wide, colorScheme: "dark" }, /leads\. This candidate waits/);
});
