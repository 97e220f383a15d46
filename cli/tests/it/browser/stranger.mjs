// Opens a page of another site, which asks `lease-api` to create Leases, and a visitor who opens a link.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import process from "node:process";

import { withBrowser } from "./chromium.mjs";

const { LEASES_URL } = process.env;

const site = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>stranger</title>"));
await new Promise((listening) => site.listen(0, "127.0.0.1", listening));

await withBrowser(async (browser) => {
  const page = await browser.newPage();
  await page.goto(`http://localhost:${site.address().port}/`);
  // Without a type of content there is no preflight, and nobody reads the answer.
  await page.evaluate(async (url) => {
    const body = (name) => new Blob([JSON.stringify({ metadata: { name }, spec: { holderIdentity: "stranger" } })]);
    await fetch(url, { method: "POST", mode: "no-cors", body: body("fetched") });
    const frame = Object.assign(document.createElement("iframe"), { name: "frame" });
    const form = Object.assign(document.createElement("form"), { action: url, method: "post", enctype: "text/plain", target: "frame" });
    const input = Object.assign(document.createElement("input"), { name: '{"metadata":{"name":"posted","a":"', value: '"}}' });
    form.append(input);
    document.body.append(frame, form);
    const sent = new Promise((loaded) => { frame.onload = loaded; });
    form.submit();
    await sent;
    navigator.sendBeacon(url, body("beacon"));
  }, LEASES_URL);
  // The pages of this server and a visit are answered as ever.
  const answer = await page.goto(LEASES_URL);
  assert.equal(answer.status(), 200);
  assert.deepEqual((await answer.json()).items, []);
});
site.close();
