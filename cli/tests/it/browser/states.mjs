// Looks at the pages of a leader (alpha) and of a follower (beta) with hostile names, in every state.
import assert from "node:assert/strict";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import process from "node:process";

import { agrees, open, titled, withBrowser } from "./chromium.mjs";

const { ALPHA_PID, ALPHA_URL, BETA_PID, BETA_URL, NAME, STORE } = process.env;

const CONTROL = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
const shown = NAME.replace("\u202e", "\\u{202e}").replace("\u2066", "\\u{2066}");

const leadsNoMore = async (page, look) => {
  // The last changes are of the past.
  const parts = ["#verdict", "#lease", "#candidate", "#terms"].map((part) => page.locator(part).innerText());
  const text = (await Promise.all(parts)).join("\n");
  assert.doesNotMatch(text, /\bleads\b(?! is not)|Leads\s+yes|Held for/, look);
};

await withBrowser(async (browser) => {
  const alpha = await open(browser, ALPHA_URL, {});
  const beta = await open(browser, BETA_URL, {});
  const plain = await open(browser, BETA_URL, { javaScriptEnabled: false });
  await agrees(alpha.page, "states-leading", { title: "Leading · ", tone: "good", text: /leads\. That is this candidate\./ });
  await agrees(beta.page, "states-following", { title: "<img", tone: "good", text: /leads\. This candidate waits\./ });
  for (const { page } of [alpha, beta, plain]) {
    assert.equal(await page.locator("#verdict strong").textContent(), shown, "the name is text");
    // `<bdi>` does not keep in a name with an isolate of its own.
    assert.doesNotMatch(await page.locator("body").textContent(), CONTROL);
    assert.equal(await page.locator("img").count(), 0);
  }
  // A page without scripts tells the same.
  await titled(plain.page, /^<img.* leads · /);
  assert.doesNotMatch(await beta.page.title(), CONTROL);
  assert.equal(await beta.page.locator("#verdict strong").evaluate((name) => name.firstElementChild.localName), "bdi");
  await alpha.page.locator("#latency", { hasText: /Writes: \d+, of which 0 failed/ }).waitFor();
  await beta.page.locator("#latency", { hasText: /Reads: \d+, of which 0 failed/ }).waitFor();
  // The bar shrinks by itself.
  await alpha.page.waitForFunction(() => {
    const rect = document.querySelector("#verdict .left rect");
    return rect && rect.width.baseVal.value > 0 && rect.width.animVal.value < rect.width.baseVal.value;
  });

  // The store goes away.
  renameSync(STORE, `${STORE}.away`);
  // A write that is under way may create the directory again.
  for (let away = false; !away;) {
    rmSync(STORE, { recursive: true, force: true });
    try {
      writeFileSync(STORE, "");
      away = true;
    } catch (error) {
      if (error.code !== "EISDIR") throw error;
    }
  }
  for (const [name, { page }] of Object.entries({ alpha, beta })) {
    await agrees(page, `states-store-down-${name}`, { title: "the leader is unknown: the store rejects requests · ", tone: "bad", text: /The leader is unknown: the store rejects requests\.[^]*held the lease when the store last answered, \d+ (s|min) ago\./ });
    await leadsNoMore(page, `${name} without a store`);
    await page.locator("#terms td", { hasText: "not known: the store rejects requests" }).or(page.locator("#terms td", { hasText: "renew deadline" })).first().waitFor();
    assert.equal(await page.locator("#verdict .left").count(), 0, "no lease is left");
  }
  await plain.page.locator("#verdict", { hasText: "held the lease when the store last answered" }).waitFor();

  // The sidecars go away.
  for (const pid of [ALPHA_PID, BETA_PID]) process.kill(Number(pid), "SIGKILL");
  for (const [name, { page }] of Object.entries({ alpha, beta })) {
    await agrees(page, `states-gone-${name}`, { title: "No answer · ", tone: "bad", text: /The leader is unknown: no answer since \d\d:\d\d:\d\d UTC\. Check that process and its machine; `leaderelect status file:/ });
    await leadsNoMore(page, `${name} without a sidecar`);
  }
  // Without scripts, the browser says so itself when it asks again.
  await plain.page.locator("#verdict").waitFor({ state: "detached" });
});
