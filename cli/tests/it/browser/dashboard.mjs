// Looks at the dashboard of a thousand locks, in every state.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { renameSync, writeFileSync } from "node:fs";
import process from "node:process";

import { agrees, open, titled, withBrowser } from "./chromium.mjs";

const { DEAD, NAME, PID, PROGRAM, STORE, URL: ADDRESS } = process.env;

// The colour at the edge of each lock is that of its class.
const edges = (page) => page.evaluate(() => [...document.querySelectorAll("#locks li")].map((line) => {
  const probe = document.createElement("i");
  probe.style.color = `var(--${line.className === "idle" ? "faint" : line.className})`;
  line.append(probe);
  const wanted = getComputedStyle(probe).color;
  probe.remove();
  return [line.className, getComputedStyle(line).borderLeftColor === wanted];
}));

await withBrowser(async (browser) => {
  const { page, complaints } = await open(browser, ADDRESS, {});
  const plain = await open(browser, ADDRESS, { javaScriptEnabled: false });
  await agrees(page, "dashboard-trouble", { title: "1 in trouble · ", tone: "bad", text: /^\s*1 in trouble, 991 led, 8 free\.\s*$/ });
  const first = page.locator("#locks li").first();
  assert.match(await first.innerText(), /dead\s+Nobody leads: the lease of gone has expired, not renewed for \d+ (s|min) \(token 7\)/);
  // A page without scripts tells the same when it is next loaded.
  await titled(plain.page, /^1 in trouble · /);
  await plain.page.locator("#locks li:first-child", { hasText: "Nobody leads" }).waitFor();
  assert.match(await page.locator("#hidden").innerText(), /^\d+ more locks do not fit here, none of them in trouble\./);
  const lines = await edges(page);
  assert.ok(lines.length > 100 && lines.length < 1000, `${lines.length} lines`);
  assert.deepEqual(lines.filter(([, agree]) => !agree), []);
  assert.equal(lines.findIndex(([tone]) => tone !== "bad"), 1, "the one in trouble comes first");
  assert.equal(await page.locator("img").count(), 0);
  const hostile = page.locator("#locks li", { hasText: "a-hostile-one" }).locator("strong bdi");
  assert.doesNotMatch(await page.locator("body").textContent(), /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/u);
  const name = await hostile.textContent();
  assert.ok(NAME.startsWith(name.split("…")[0]) && name.length === 48, `${name} is the beginning of a name, as text`);

  execFileSync(PROGRAM, ["release", "--force", "--yes", DEAD], { stdio: "ignore" });
  await agrees(page, "dashboard-well", { title: "No trouble seen: 991 led, 9 free · ", tone: "good", text: /^\s*No trouble seen: 991 led, 9 free\.\s*$/ });
  assert.ok((await edges(page)).every(([tone]) => tone !== "bad"));

  renameSync(STORE, `${STORE}.away`);
  writeFileSync(STORE, "");
  await agrees(page, "dashboard-store-down", { title: "Leaders not known · ", tone: "bad", text: /The leader is unknown: the store rejects requests; the locks were last listed \d+ (s|min) ago\./ });
  assert.ok((await edges(page)).every(([tone]) => tone === "bad"));
  assert.doesNotMatch(await page.locator("main").innerText(), /\bleads\b(?! is not)|\bholds\b|\bFree\b/);
  await page.locator("#problem .alarm").waitFor();
  await plain.page.locator("#verdict", { hasText: "The leader is unknown" }).waitFor();
  assert.ok(await page.evaluate(() => window.neverReloaded), "the page updates itself without a reload");
  assert.deepEqual(complaints, []);

  process.kill(Number(PID), "SIGKILL");
  await agrees(page, "dashboard-gone", { title: "No answer · ", tone: "bad", text: /The leader is unknown: no answer since [\d:]+ UTC\. Check that process and its machine; `leaderelect list / });
  assert.equal(await page.locator("#locks li:visible").count(), 0, "what nobody confirms any more is not shown");
  await plain.page.locator("#verdict").waitFor({ state: "detached" });
});
