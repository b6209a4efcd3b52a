// Renders what the sanitiser makes of hostile pages in Chromium, with the policy of the frame and without: nothing runs, nothing is
// fetched, and no element or attribute is in the document that could. Run by hand, with playwright-core beside it or in NODE_PATH:
//
//   cargo build -p sluice-webmail --example sanitise
//   node ci/webmail_browser.mjs target/debug/examples/sanitise FOLDER...
//
// FOLDER has lists of vectors as JSON (every text in them is a page) and pages (*.html).
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { chromium } = createRequire(join(process.cwd(), "x.js"))(process.env.PLAYWRIGHT ?? "playwright-core");
const [program, ...folders] = process.argv.slice(2);
const POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; " +
  "frame-ancestors 'self'; sandbox allow-popups allow-popups-to-escape-sandbox";
const ELEMENTS = "script,style,svg,math,form,input,button,textarea,select,iframe,frame,object,embed,link,meta[http-equiv],base," +
  "template,noscript,audio,video,source,xmp,plaintext,dialog,portal";

const files = (path) => statSync(path).isDirectory() ? readdirSync(path).flatMap((name) => files(join(path, name))) : [path];
const texts = (value) => typeof value === "string" ? [value]
  : value && typeof value === "object" ? Object.values(value).flatMap(texts) : [];
const pages = new Set();
for (const path of folders.flatMap(files)) {
  const text = readFileSync(path, "utf8");
  try { texts(JSON.parse(text)).filter((page) => page.includes("<")).forEach((page) => pages.add(page)); } catch { pages.add(text); }
}
const raw = [...pages].slice(0, Number(process.env.PAGES_MAX ?? 100000));
const input = { input: JSON.stringify(raw), maxBuffer: 1 << 30 };
// The same pages unsafe say whether this judge sees anything at all.
const made = process.env.UNSAFE ? raw : JSON.parse(execFileSync(program, [], input));

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
let wrong = 0;
for (const policy of [POLICY, null]) {
  const page = await (await browser.newContext()).newPage();
  let events = [], body = "";
  page.on("dialog", (dialog) => { events.push("dialog"); dialog.dismiss().catch(() => {}); });
  page.on("pageerror", (error) => events.push(`script: ${error.message}`));
  await page.addInitScript(() => {
    for (const name of ["alert", "confirm", "prompt", "print", "open"]) window[name] = () => { document.title = "RAN"; };
  });
  await page.route("**/*", (route) => {
    if (route.request().url() === "http://mail.test/") {
      const headers = policy ? { "content-security-policy": policy } : {};
      return route.fulfill({ contentType: "text/html; charset=utf-8", headers, body });
    }
    events.push(`fetch: ${route.request().url().slice(0, 80)}`);
    return route.abort();
  });
  for (const [at, html] of made.entries()) {
    events = [];
    body = `<!DOCTYPE html><meta charset=utf-8><link rel=icon href=data:,><title>-</title><body>${html}</body>`;
    await page.goto("http://mail.test/", { waitUntil: "load", timeout: 10000 }).catch((error) => events.push(`load: ${error.message}`));
    // Under the policy no script of ours runs there either; the document is the same without it.
    const found = policy ? [] : await page.evaluate((elements) => {
      const bad = [...document.body.querySelectorAll(elements)].map((element) => element.localName);
      for (const element of document.body.querySelectorAll("*")) {
        for (const { name, value } of element.attributes) {
          if (/^on|^srcdoc$|^formaction$|^ping$/.test(name) || /^(id|name)$/.test(name) && !value.startsWith("mail-") || /^(href|src|action|data|poster|background)$/.test(name) && /^\s*(javascript|vbscript):/i.test(value)) bad.push(`${element.localName} ${name}`);
        }
      }
      if (document.title === "RAN") bad.push("ran");
      return bad;
    }, ELEMENTS).catch((error) => [`evaluate: ${error.message.slice(0, 80)}`]);
    if (events.length + found.length > 0) {
      wrong++;
      if (wrong < 20) console.log(JSON.stringify({ policy: !!policy, at, events, found, html: html.slice(0, 300) }));
    }
  }
  await page.close();
}
await browser.close();
console.log(`${made.length} pages, with the policy and without; ${wrong} wrong`);
process.exit(wrong ? 1 : 0);
