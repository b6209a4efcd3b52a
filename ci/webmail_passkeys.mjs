// Passkeys in Chromium, by a virtual authenticator: added, used alone, and used as the second step; and what a browser without script
// sees. Run by hand against a server with an account, with playwright-core beside it or in NODE_PATH:
//
//   node ci/webmail_passkeys.mjs http://localhost:8025 ann PASSWORD
//   node ci/webmail_passkeys.mjs --admin http://localhost:2082 ann PASSWORD
import { createRequire } from "node:module";
import { join } from "node:path";
import { strict as assert } from "node:assert";

const { chromium } = createRequire(join(process.cwd(), "x.js"))(process.env.PLAYWRIGHT ?? "playwright-core");
const words = process.argv.slice(2).filter((word) => word !== "--admin");
const isAdmin = process.argv.includes("--admin");
const [site, name, password] = words;
const place = isAdmin ? "/you" : "/passkeys";
const fields = isAdmin
  ? { name: "name", proof: "proof", own: "own", begin: "by-passkeys" }
  : { name: "name", proof: "password", own: "own", begin: "passkeys" };

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({ locale: "en-GB" });
const page = await context.newPage();
const faults = [];
page.on("pageerror", (error) => faults.push(error.message));
page.on("console", (message) => message.type() === "error" && !/403|400/.test(message.text()) && faults.push(message.text()));

const devtools = await context.newCDPSession(page);
await devtools.send("WebAuthn.enable");
const options = { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true };
const { authenticatorId } = await devtools.send("WebAuthn.addVirtualAuthenticator", { options });

const open = (path) => page.goto(site + path);
const byPassword = async () => {
  await open(isAdmin ? "/" : "/login");
  await page.fill("#name", name);
  await page.fill("#password", password);
  await page.click("form[action='/login'] button");
};
const usePasskey = async () => {
  await Promise.all([page.waitForNavigation(), page.click("form:has([data-passkey=get]) button")]);
};
const leave = () => page.click("form[action='/logout'] button, form[action='/leave'] button");
const isIn = async () => (await page.locator("nav.folders").count()) === 1;

await byPassword();
assert(await isIn(), "logged in by the password");
await open(place);
const form = page.locator("form:has([data-passkey=create])");
await form.locator(`[name=${fields.name}]`).fill("Virtual key");
await form.locator(`[name=${fields.proof}]`).fill(password);
await Promise.all([page.waitForNavigation(), form.locator("button").click()]);
assert((await page.textContent("main")).includes("Virtual key"), "the passkey is listed");
const { credentials } = await devtools.send("WebAuthn.getCredentials", { authenticatorId });
assert.equal(credentials.length, 1);
console.log("added", credentials[0].rpId, "counter", credentials[0].signCount);

// The same authenticator is not added twice: the browser refuses by the credentials that are known.
await form.locator(`[name=${fields.name}]`).fill("Again");
await form.locator(`[name=${fields.proof}]`).fill(password);
await form.locator("button").click();
await form.locator("[data-failed]").waitFor({ state: "visible" });
console.log("not added twice");

await leave();
await open("/login/passkey");
await usePasskey();
assert(await isIn(), "logged in by the passkey alone");
console.log("logged in by the passkey alone");

await open(isAdmin ? "/you" : "/second");
await page.fill(`#${fields.own}`, password);
await page.click(`button[value=${fields.begin}]`);
const codes = (await page.textContent("main pre")).trim().split("\n");
assert.equal(codes.length, 10);
await leave();
await byPassword();
assert(!(await isIn()), "the password alone is not enough");
await usePasskey();
assert(await isIn(), "logged in by password and passkey");
console.log("logged in by password and passkey");

await leave();
await byPassword();
await page.fill("#code", codes[0]);
await page.click("form:has(#code) button");
assert(await isIn(), "logged in by password and recovery code");
console.log("logged in by password and recovery code");
await leave();

await devtools.send("WebAuthn.setUserVerified", { authenticatorId, isUserVerified: false });
await open("/login/passkey");
await page.click("form:has([data-passkey=get]) button");
await page.locator("[data-failed]").waitFor({ state: "visible" });
console.log("the browser refuses a user who is not verified");
assert.deepEqual(faults, []);

const plain = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
await plain.goto(site + "/login/passkey");
assert(await plain.locator("form button").isDisabled() && await plain.locator("[data-passkey]").isVisible());
console.log("without script the page says so");
await browser.close();
