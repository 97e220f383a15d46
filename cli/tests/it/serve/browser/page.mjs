// Looks at the pages of a leader (alpha) and of a follower (beta), ends the leader, and then the follower.
// The first argument is the directory of the packages.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

const packages = process.argv[2];
const require = createRequire(join(packages, "package.json"));
const playwright = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const { ALPHA_PID, ALPHA_URL, BETA_PID, BETA_URL, BETA_PASSWORD, SCREENSHOTS } = process.env;
const PATIENCE = 60_000;

function launchOptions(home) {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
  const options = { args: [...args, "--disable-component-update", "--disable-sync"], timeout: PATIENCE };
  const own = process.env.LEADERELECTION_TEST_CHROMIUM;
  if (own) return { ...options, executablePath: own };
  // Its own libraries and fonts, for machines that have none.
  const chromium = join(packages, "chromium");
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    LD_LIBRARY_PATH: join(chromium, "al2023/lib"),
    FONTCONFIG_PATH: join(chromium, "fonts"),
  };
  return { ...options, executablePath: join(chromium, "chromium"), env };
}

async function launch(home) {
  try {
    return await playwright.chromium.launch(launchOptions(home));
  } catch (error) {
    const advice = "Chromium does not start. Install Debian's package `chromium`, or another one, and give its path in";
    throw new Error(`${advice} LEADERELECTION_TEST_CHROMIUM.`, { cause: error });
  }
}

// A page, and whatever happens that must not.
async function open(browser, url, options) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(`${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error}`));
  page.on("response", (response) => response.ok() || complaints.push(`${response.status()}: ${response.url()}`));
  page.on("request", (request) => {
    const asked = request.url();
    if (!asked.startsWith(`${url}/`) && asked !== "data:,") complaints.push(`request to ${asked}`);
  });
  await page.goto(url);
  await page.evaluate(() => { window.neverReloaded = true; });
  return { page, complaints };
}

const verdict = (page, text) => page.locator("#verdict", { hasText: text }).waitFor();

async function isAccessible(page, name) {
  await page.evaluate(axe);
  const { violations, passes } = await page.evaluate(() => window.axe.run());
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.failureSummary).join("; ")}`);
  assert.deepEqual(told, [], name);
  assert.ok(passes.some(({ id }) => id === "color-contrast"), `${name}: the contrast was looked at`);
}

async function looks(page, name) {
  await isAccessible(page, name);
  await page.screenshot({ path: join(SCREENSHOTS, `page-${name}.png`), fullPage: true });
  return page.evaluate(() => getComputedStyle(document.body).backgroundColor);
}

const home = mkdtempSync(join(tmpdir(), "leaderelect-page-"));
const browser = await launch(home);
try {
  const alpha = await open(browser, ALPHA_URL, { colorScheme: "light" });
  await verdict(alpha.page, "<b>alpha</b> leads. That is this candidate.");
  assert.equal(await alpha.page.title(), `Leading · ${await alpha.page.locator(".lock").textContent()}`);

  const httpCredentials = { username: "anybody", password: BETA_PASSWORD };
  const beta = await open(browser, BETA_URL, { colorScheme: "dark", httpCredentials });
  await verdict(beta.page, "<b>alpha</b> leads. This candidate waits.");
  assert.match(await beta.page.title(), /^<b>alpha<\/b> leads · /);
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
  assert.equal(await alpha.page.title(), `No answer · ${await alpha.page.locator(".lock").textContent()}`);
  await looks(alpha.page, "unanswered-dark");

  await verdict(beta.page, "beta leads. That is this candidate.");
  assert.match(await beta.page.title(), /^Leading · /);
  await beta.page.locator("#lease tr", { hasText: "Fencing token" }).locator("td", { hasText: /^1$/ }).waitFor();
  await beta.page.locator("#changes", { hasText: "started leading with fencing token 1: the lease was free" }).waitFor();
  const before = await beta.page.locator("#now").textContent();
  await beta.page.locator("#now").filter({ hasNotText: before }).waitFor();
  await looks(beta.page, "changed-light");
  assert.ok(await beta.page.evaluate(() => window.neverReloaded), "the page updates itself without a reload");
  assert.ok(await beta.page.getByRole("alert").isHidden());
  assert.deepEqual(beta.complaints, []);

  // Even on a phone nothing is cut off.
  await beta.page.setViewportSize({ width: 320, height: 640 });
  assert.ok(await beta.page.evaluate(() => document.documentElement.scrollWidth <= 320), "it fits a phone");
  await looks(beta.page, "phone");
  process.kill(Number(BETA_PID), "SIGTERM");
  await beta.page.getByRole("alert").waitFor();
  assert.match(await beta.page.title(), /^No answer · /);
} finally {
  await browser.close();
  rmSync(home, { recursive: true, force: true });
}
