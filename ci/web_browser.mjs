// Walks Chromium through the proxy with opened TLS: pages replayed, HTTP/2, WebSocket, downloads blocked, cut and resumed, an upload refused, a
// server that wants a certificate, an Adblock list. Each step leaves a screenshot. Run by hand, with playwright-core beside it or in NODE_PATH:
//
//   node ci/web_browser.mjs target/debug/sluice target/data/web-pages [SHOTS]
import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createSecureServer } from "node:http2";
import { createServer as createTlsServer } from "node:https";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";

const { chromium } = createRequire(join(process.cwd(), "x.js"))(process.env.PLAYWRIGHT ?? "playwright-core");
const [program, folder, shots = "shots"] = process.argv.slice(2);
const PAGES = Number(process.env.PAGES ?? 50);
const EICAR = ["X5O!P%@AP[4\\PZX54(P^)7CC)7}", "$EICAR-STANDARD-", "ANTIVIRUS-TEST-FILE!$H+H*"].join("");
const LARGE = Buffer.alloc(3_000_000, "0123456789abcdef");
const MARK = "mark of the tests of a browser";
const INFECTED = Buffer.concat([LARGE, Buffer.from(MARK)]);
const home = mkdtempSync(join(tmpdir(), "web-browser-"));
const at = (name) => join(home, name);
const openssl = (...args) => execFileSync("openssl", args, { stdio: ["ignore", "pipe", "ignore"] });
const spki = (file) => createHash("sha256").update(openssl("pkey", "-pubin", "-outform", "der", "-in", file)).digest("base64");
mkdirSync(shots, { recursive: true });

const files = (path) => statSync(path).isDirectory() ? readdirSync(path).sort().flatMap((name) => files(join(path, name))) : [path];
const pages = files(folder).filter((path) => /\.html?$/.test(path)).slice(0, PAGES);

// Certificates: an authority of servers that the proxy trusts, a server by it, and the proxy's own authority that the browser trusts.
openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=Servers",
  "-keyout", at("servers.key"), "-out", at("servers.crt"));
openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost", "-keyout", at("a.key"), "-out", at("a.csr"));
writeFileSync(at("a.ext"), "subjectAltName=DNS:localhost\n");
openssl("x509", "-req", "-in", at("a.csr"), "-CA", at("servers.crt"), "-CAkey", at("servers.key"), "-days", "20", "-extfile", at("a.ext"), "-out", at("a.crt"));
execFileSync(program, ["web", "ca", "create", at("own.pem")]);
const tls = { key: readFileSync(at("a.key")), cert: readFileSync(at("a.crt")) };

// The sites.
const seen = [];
let broken = 0;
const blob = (response, bytes, more = {}) => {
  response.writeHead(200, { "content-type": "application/octet-stream", "content-length": bytes.length, ...more });
  response.end(bytes);
};
const html = (response, text) => { response.writeHead(200, { "content-type": "text/html; charset=utf-8" }); response.end(text); };
const site = (request, response) => {
  const path = request.url.split("?")[0];
  seen.push(`${request.method} ${path} ${request.httpVersion}`);
  const replayed = path.startsWith("/page/") && pages[Number(path.slice(6))];
  if (replayed) return html(response, readFileSync(replayed));
  if (request.method === "POST") {
    const pieces = [];
    request.on("data", (piece) => pieces.push(piece));
    return request.on("end", () => { seen.push(`got ${Buffer.concat(pieces).length}`); html(response, "<h1>Thanks</h1>"); });
  }
  switch (path) {
    case "/eicar.com": return blob(response, Buffer.from(EICAR));
    case "/infected.bin": return blob(response, INFECTED);
    case "/large.bin": return blob(response, LARGE);
    case "/resumed.bin": {
      const validators = { etag: "\"v1\"", "accept-ranges": "bytes", "last-modified": "Sat, 28 Nov 2026 10:00:00 GMT" };
      seen.push(`range ${request.headers.range}`);
      if (broken++ > 0) return blob(response, LARGE, validators);
      response.writeHead(200, { ...validators, "content-type": "application/octet-stream", "content-length": LARGE.length });
      return response.write(LARGE.subarray(0, 1_500_000), () => setTimeout(() => response.stream?.close(2) ?? response.destroy(), 500));
    }
    case "/form": return html(response, "<form method=post enctype=multipart/form-data action=/up><input type=file name=f><button>Send</button></form>");
    case "/links": return html(response, ["eicar.com", "infected.bin", "large.bin", "resumed.bin"].map((name) => `<p><a href=/${name} download>${name}</a>`).join(""));
    case "/shop": return html(response, "<h1>Shop</h1><img id=good src=/img/a.svg><img id=ad src=/ads/a.svg><script src=/ads/a.js></script><script src=/ads/kept.js></script>");
    case "/ads/a.js": case "/ads/kept.js": response.writeHead(200, { "content-type": "text/javascript" }); return response.end(`window["${path}"] = 1`);
    default:
      if (!path.endsWith(".svg")) { response.writeHead(404); return response.end(); }
      response.writeHead(200, { "content-type": "image/svg+xml" });
      return response.end("<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'><rect width='40' height='40' fill='green'/></svg>");
  }
};

// WebSocket that says everything again (RFC 6455), for messages of less than 126 bytes.
const echo = (request, socket) => {
  const key = createHash("sha1").update(request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n\r\n`);
  socket.on("error", () => {});
  socket.on("data", (frame) => {
    const length = frame[1] & 127;
    if ((frame[0] & 15) === 8) return socket.end(Buffer.from([0x88, 0]));
    const text = frame.subarray(6, 6 + length).map((byte, place) => byte ^ frame[2 + place % 4]);
    seen.push(`message ${text}`);
    socket.write(Buffer.concat([Buffer.from([0x81, length]), text]));
  });
};
const listen = (server) => new Promise((done) => server.listen(0, "127.0.0.1", () => done(server.address().port)));
const plain = createServer(site), secure = createSecureServer({ ...tls, allowHTTP1: true }, site);
const sockets = createTlsServer(tls, site).on("upgrade", echo);
const proving = createTlsServer({ ...tls, requestCert: true, rejectUnauthorized: true, maxVersion: "TLSv1.2" }, site);
const [http, https, wss, pinned] = await Promise.all([plain, secure, sockets, proving].map(listen));

// The proxy.
mkdirSync(at("lists"));
writeFileSync(at("lists/e2guardian.conf"), "filtergroups = 1\n");
writeFileSync(at("lists/e2guardianf1.conf"), `sslmitm = on\nbannedurllist = '${at("lists/ads")}'\nnaughtynesslimit = 0\n`);
writeFileSync(at("lists/ads"), "! Title: Ads\n/ads/$image,script\n@@/ads/kept.js$script\n");
writeFileSync(at("test.ndb"), `Test.Mark:0:*:${Buffer.from(MARK).toString("hex")}\n`);
writeFileSync(at("sluice.toml"), `hostname = "proxy.test"\n[database]\npaths = ["${at("test.ndb")}"]\n[web]\nconfig = "${at("lists")}"\n[tls]\nauthorities = "${at("servers.crt")}"
signing_authority = "${at("own.pem")}"\n[resources]\nhead_window_bytes = 262144\n[[listener]]\nprotocol = "http"\naddress = "127.0.0.1:0"
destinations = ["127.0.0.0/8"]\nports = [${http}]\nconnect_ports = [${https}, ${wss}, ${pinned}]\nhttps = "inspect"\npinned = "tunnel"\n`);
const root = process.getuid() === 0 ? ["--allow-root"] : [];
const proxy = spawn(resolve(program), ["serve", ...root, "--config", at("sluice.toml")], { cwd: home });
let log = "";
proxy.stderr.on("data", (piece) => { log += piece; });
const address = await new Promise((done, failed) => {
  proxy.stdout.on("data", (piece) => { log += piece; const found = /127\.0\.0\.1:\d+/.exec(log); if (found) done(found[0]); });
  proxy.on("exit", () => failed(new Error(log)));
});
writeFileSync(at("own.pub"), openssl("x509", "-pubkey", "-noout", "-in", at("own.pem")));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  proxy: { server: `http://${address}`, bypass: "<-loopback>" },
  args: ["--no-sandbox", `--ignore-certificate-errors-spki-list=${spki(at("own.pub"))}`],
});
const context = await browser.newContext({ acceptDownloads: true });
let wrong = 0;
const step = async (name, walk) => {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const said = await walk(page).catch((error) => `error: ${error.message.slice(0, 400)}`);
  await page.screenshot({ path: join(shots, `${name}.png`) }).catch(() => {});
  await page.close();
  if (said !== true) wrong++;
  console.log(said === true ? `right  ${name}` : `WRONG  ${name}: ${JSON.stringify(said)}`);
};
const origin = { http: `http://localhost:${http}`, https: `https://localhost:${https}` };
const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");
const fetched = async (page, name) => {
  await page.goto(`${origin.https}/links`);
  const [download] = await Promise.all([page.waitForEvent("download"), page.click(`text=${name}`)]);
  return { failure: await download.failure(), bytes: await download.path().then(readFileSync, () => Buffer.alloc(0)) };
};

await step("pages", async (page) => {
  const bad = [];
  for (const [number, file] of pages.entries()) {
    const response = await page.goto(`${number % 2 ? origin.https : origin.http}/page/${number}`, { waitUntil: "load" });
    if (response.status() !== 200 || digest(await response.body()) !== digest(readFileSync(file))) bad.push(`${basename(file)} ${response.status()}`);
    if (number % 10 < 2) await page.screenshot({ path: join(shots, `page-${number}.png`) });
  }
  return bad.length === 0 && pages.length > 0 || bad;
});
await step("http2", async (page) => {
  await page.goto(`${origin.https}/form`);
  const protocol = await page.evaluate(() => performance.getEntriesByType("navigation")[0].nextHopProtocol);
  return protocol === "h2" && seen.includes("GET /form 2.0") || [protocol, seen.slice(-3)];
});
await step("blocked", async (page) => {
  const statuses = [];
  for (const root of [origin.http, origin.https]) statuses.push((await page.goto(`${root}/eicar.com`)).status());
  const text = await page.textContent("body");
  return statuses.every((status) => status === 403) && text.includes("Eicar") || [statuses, text];
});
await step("blocked-download", async (page) => {
  const { failure } = await fetched(page, "eicar.com");
  return failure !== null || "it was downloaded";
});
await step("cut-download", async (page) => {
  const { failure } = await fetched(page, "infected.bin");
  const again = await page.goto(`${origin.https}/infected.bin`).then((response) => response.status(), (error) => error.message);
  return failure !== null && again === 403 || [failure, again];
});
await step("download", async (page) => digest((await fetched(page, "large.bin")).bytes) === digest(LARGE) || "other bytes");
await step("resumed-download", async (page) => {
  const { failure } = await fetched(page, "resumed.bin");
  // The browser asks for the rest; the proxy fetches and inspects the whole.
  const { status, sum } = await page.evaluate(async (url) => {
    const response = await fetch(url, { headers: { Range: "bytes=1500000-" } });
    const sum = new Uint8Array(await crypto.subtle.digest("SHA-256", await response.arrayBuffer()));
    return { status: response.status, sum: [...sum] };
  }, `${origin.https}/resumed.bin`);
  const isWhole = Buffer.from(sum).toString("hex") === digest(LARGE) && !seen.some((line) => line.startsWith("range bytes"));
  return failure !== null && status === 200 && isWhole || [failure, status, seen.slice(-3)];
});
await step("upload", async (page) => {
  await page.goto(`${origin.https}/form`);
  await page.setInputFiles("input", { name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("harmless") });
  await Promise.all([page.waitForNavigation(), page.click("button")]);
  return (await page.textContent("h1")) === "Thanks" || page.textContent("body");
});
await step("upload-refused", async (page) => {
  await page.goto(`${origin.https}/form`);
  await page.setInputFiles("input", { name: "e.com", mimeType: "application/octet-stream", buffer: Buffer.from(EICAR) });
  const before = seen.length;
  const [response] = await Promise.all([page.waitForNavigation(), page.click("button")]);
  return response.status() === 403 && !seen.slice(before).some((line) => line.startsWith("got")) || [response.status(), seen.slice(before)];
});
await step("websocket", async (page) => {
  await page.goto(`${origin.https}/form`);
  const talk = await page.evaluate(([url, bad]) => new Promise((done) => {
    const heard = [], socket = new WebSocket(url);
    socket.onopen = () => socket.send("hello");
    socket.onmessage = (event) => { heard.push(event.data); socket.send(bad); };
    socket.onclose = (event) => done([...heard, event.code]);
  }), [`wss://localhost:${wss}/`, EICAR]);
  const isHeard = seen.some((line) => line.startsWith("message X5O"));
  return JSON.stringify(talk) === '["hello",1008]' && !isHeard || [talk, isHeard];
});
await step("adblock", async (page) => {
  await page.goto(`${origin.https}/shop`, { waitUntil: "load" });
  const width = (id) => page.evaluate((id) => document.getElementById(id).naturalWidth, id);
  const ran = await page.evaluate(() => [window["/ads/a.js"], window["/ads/kept.js"]]);
  const found = [await width("good") > 0, await width("ad") > 0, ...ran.map(Boolean)];
  return JSON.stringify(found) === "[true,false,false,true]" || found;
});
await step("certificate-wanted", async (page) => {
  const visit = () => page.goto(`https://localhost:${pinned}/form`).then((response) => response.status(), (error) => error.message.split("\n")[0]);
  const [first, second] = [await visit(), await visit()];
  return /ERR_BAD_SSL_CLIENT_AUTH_CERT|ERR_CERT_AUTHORITY_INVALID|ERR_SSL_CLIENT_AUTH/.test(second) || [first, second];
});

await browser.close();
proxy.removeAllListeners("exit");
const ended = new Promise((done) => proxy.on("exit", done));
proxy.kill();
await ended;
writeFileSync(join(shots, "log"), log);
rmSync(home, { recursive: true });
console.log(`${wrong} wrong; screenshots and the log are in ${shots}`);
process.exit(wrong ? 1 : 0);
