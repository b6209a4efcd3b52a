// A browser uses the image: logs in, reads a mail with its page in a frame, writes one with a file, finds it, and logs out. Run by
// `bare/test.py IMAGE --browser`, with playwright-core beside it or named by PLAYWRIGHT, and Debian's Chromium.
//
//   node bare/browser.mjs URL NAME PASSWORD SUBJECT
import { createRequire } from "node:module";
import { join } from "node:path";

const { chromium } = createRequire(join(process.cwd(), "x.js"))(process.env.PLAYWRIGHT ?? "playwright-core");
const [url, name, password, subject] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const page = await (await browser.newContext({ ignoreHTTPSErrors: true })).newPage();
const wrong = [];
page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
page.on("pageerror", (error) => wrong.push(error.message));
const check = (holds, what) => { if (!holds) throw new Error(what); };
const timed = async (what, act) => {
  const began = performance.now();
  await act();
  console.log(`${what}: ${Math.round(performance.now() - began)} ms`);
};

try {
  await timed("login page", () => page.goto(url));
  await page.fill("#name", name);
  await page.fill("#password", password);
  await timed("login and list", () => page.click("form[action='/login'] button"));
  await timed("mail", () => page.click(`a:has-text("${subject}")`));
  const frame = await page.waitForSelector("iframe");
  const shown = await (await frame.contentFrame()).waitForSelector("b");
  check(await shown.textContent() === "Ann", "the mail's page is shown");
  await timed("form", () => page.goto(new URL("/write", url).href));
  await page.fill("[name=to]", name);
  await page.fill("[name=subject]", "by a browser");
  await page.fill("[name=text]", "Hello");
  await page.setInputFiles("input[type=file]", { name: "a.bin", mimeType: "application/octet-stream", buffer: Buffer.alloc(100_000, 7) });
  await timed("sending a file of 100 kB", () => page.click("button[name=do][value=send]"));
  check(page.url().includes("sent"), `the mail is sent: ${page.url()}`);
  await page.goto(url);
  await page.click('a:has-text("by a browser")');
  const [download] = await Promise.all([page.waitForEvent("download"), page.click("a[href*='/part/']")]);
  check(download.suggestedFilename() === "a.bin", "its file is downloaded");
  check(wrong.length === 0, `the console is empty: ${wrong}`);
} finally {
  await browser.close();
}
