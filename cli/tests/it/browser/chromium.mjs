// A Chromium, and what is looked at on every page. The first argument of the script is the directory of the packages.
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
const { SCREENSHOTS } = process.env;
// A bound for what never takes so long, also where browsers share two processors with other tests.
const PATIENCE = 300_000;

function launchOptions(home) {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
  // The /dev/shm of a container is often too small for the picture of a thousand locks.
  args.push("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage");
  const options = { args, timeout: PATIENCE };
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
export async function open(browser, url, options) {
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
  if (options.javaScriptEnabled === false) return { page, complaints };
  await page.evaluate(() => { window.neverReloaded = true; });
  return { page, complaints };
}

export const verdict = (page, text) => page.locator("#verdict", { hasText: text }).waitFor();

async function isAccessible(page, name) {
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axe);
  const { violations, passes } = await page.evaluate(() => window.axe.run());
  const told = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.failureSummary).join("; ")}`);
  assert.deepEqual(told, [], name);
  assert.ok(passes.some(({ id }) => id === "color-contrast"), `${name}: the contrast was looked at`);
}

export async function looks(page, name) {
  await isAccessible(page, name);
  await page.screenshot({ path: join(SCREENSHOTS, `page-${name}.png`), fullPage: true });
  return page.evaluate(() => getComputedStyle(document.body).backgroundColor);
}

// Waits for a title, also of a page that loads itself again in the meantime.
export async function titled(page, wanted) {
  for (let waited = 0; waited < PATIENCE; waited += 100) {
    const title = await page.title().catch(() => "");
    if (wanted.test(title)) return;
    await page.waitForTimeout(100);
  }
  assert.fail(`no title like ${wanted}`);
}

export const fits = (page, width) => page.evaluate((width) => document.documentElement.scrollWidth <= width, width);

// The bytes of the page and of all that it loads.
const size = (page) => page.evaluate(() => {
  const entries = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  const files = new Map(entries.map(({ name, decodedBodySize }) => [name, decodedBodySize]));
  return [...files.values()].reduce((sum, bytes) => sum + bytes, 0);
});

// The verdict with its title, classes and colours, taken at one moment at which it says `text`. A look that takes too
// long on a busy machine makes the page doubt for a moment, and the page may say so.
async function seenOnceTold(page, text, tone) {
  const wanted = { tone, source: text.source, flags: text.flags };
  const seen = await page.waitForFunction(({ tone, source, flags }) => {
    const shown = document.querySelector("#verdict .verdict");
    if (!shown || !new RegExp(source, flags).test(shown.textContent)) return null;
    const probe = document.createElement("i");
    probe.style.color = `var(--${tone})`;
    document.body.append(probe);
    const wanted = getComputedStyle(probe).color;
    probe.remove();
    const strong = shown.querySelector("strong");
    const colours = [getComputedStyle(shown).borderLeftColor, strong ? getComputedStyle(strong).color : wanted];
    return { title: document.title, classes: shown.className, colours, wanted };
  }, wanted);
  return seen.jsonValue();
}

// The title, the words and the colours of the verdict say the same, in each look.
export async function agrees(page, name, { title, tone, text }) {
  await verdict(page, text);
  await page.waitForFunction((title) => document.title.startsWith(title), title);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 800 });
      const look = `${name}-${colorScheme}-${width}`;
      // Each scheme and each width once: colours do not depend on widths, and these rules take most of the time.
      if ((colorScheme === "light") === (width > 390)) await isAccessible(page, look);
      const seen = await seenOnceTold(page, text, tone);
      assert.ok(seen.title.startsWith(title), `${look}: the title is ${seen.title}`);
      assert.equal(seen.classes, `verdict ${tone}`, look);
      assert.deepEqual(seen.colours, [seen.wanted, seen.wanted], look);
      assert.ok(await fits(page, width), `${look}: it is wider than ${width}`);
      await page.screenshot({ path: join(SCREENSHOTS, `${look}.png`) });
    }
  }
  const bytes = await size(page);
  assert.ok(bytes < 100_000, `${name}: ${bytes} bytes`);
}

// Runs the tests in a browser that ends with them.
export async function withBrowser(tests) {
  const home = mkdtempSync(join(tmpdir(), "leaderelect-page-"));
  const browser = await launch(home);
  try {
    await tests(browser);
  } finally {
    await browser.close();
    rmSync(home, { recursive: true, force: true });
  }
}
