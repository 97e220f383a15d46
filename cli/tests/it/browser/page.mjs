// Looks at the pages of a leader (alpha) and of a follower (beta), ends the leader, and then the follower.
import assert from "node:assert/strict";
import process from "node:process";

import { looks, open, titled, verdict, withBrowser } from "./chromium.mjs";

const { ALPHA_PID, ALPHA_URL, BETA_PID, BETA_URL, BETA_PASSWORD } = process.env;

// A look that takes too long on a busy machine makes the page doubt for a moment, and the page may say so.
const isTitled = (page, title) => page.waitForFunction((title) => document.title === title, title);

await withBrowser(async (browser) => {
  const alpha = await open(browser, ALPHA_URL, { colorScheme: "light" });
  await verdict(alpha.page, "<b>alpha</b> leads. That is this candidate.");
  const lock = await alpha.page.locator(".lock").textContent();
  await isTitled(alpha.page, `Leading · ${lock}`);

  const httpCredentials = { username: "anybody", password: BETA_PASSWORD };
  const beta = await open(browser, BETA_URL, { colorScheme: "dark", httpCredentials });
  await verdict(beta.page, "<b>alpha</b> leads. This candidate waits.");
  await titled(beta.page, /^<b>alpha<\/b> leads · /);
  const light = await looks(alpha.page, "leading-light");
  const dark = await looks(beta.page, "following-dark");
  assert.notEqual(light, dark, "the page has two looks");
  await alpha.page.emulateMedia({ colorScheme: "dark" });
  assert.equal(await looks(alpha.page, "leading-dark"), dark);
  await beta.page.emulateMedia({ colorScheme: "light" });
  assert.equal(await looks(beta.page, "following-light"), light);

  // A page that is served by nobody any more says so, and its complaints are in order.
  assert.deepEqual(alpha.complaints, []);
  process.kill(Number(ALPHA_PID), "SIGTERM");
  await alpha.page.getByRole("alert").waitFor();
  await isTitled(alpha.page, `No answer · ${lock}`);
  await looks(alpha.page, "unanswered-dark");

  await verdict(beta.page, "beta leads. That is this candidate.");
  await titled(beta.page, /^Leading · /);
  await beta.page.locator("#lease tr", { hasText: "Fencing token" }).locator("td", { hasText: /^2$/ }).waitFor();
  await beta.page.locator("#changes", { hasText: "started leading with fencing token 2: the lease was free" }).waitFor();
  const before = await beta.page.locator("#now").textContent();
  await beta.page.locator("#now").filter({ hasNotText: before }).waitFor();
  await looks(beta.page, "changed-light");
  assert.ok(await beta.page.evaluate(() => window.neverReloaded), "the page updates itself without a reload");
  await beta.page.getByRole("alert").waitFor({ state: "hidden" });
  assert.deepEqual(beta.complaints, []);

  // Even on a phone nothing is cut off.
  await beta.page.setViewportSize({ width: 320, height: 640 });
  assert.ok(await beta.page.evaluate(() => document.documentElement.scrollWidth <= 320), "it fits a phone");
  await looks(beta.page, "phone");
  process.kill(Number(BETA_PID), "SIGKILL");
  await beta.page.getByRole("alert").waitFor();
  await verdict(beta.page, /no answer since [\d:]+ UTC, when beta led\. Check that process and its machine; /);
  await titled(beta.page, /^No answer · /);
});
