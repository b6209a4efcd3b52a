// Which mails nodemailer's mailparser and postal-mime open, where they are installed: NODE_MODULES names the folder.
// Arguments and output as of readers.py.
import fs from 'fs';
import { createRequire } from 'module';
const require = createRequire(process.env.NODE_MODULES + '/readers.js');
const { simpleParser } = require('mailparser');
const Postal = require('postal-mime');
const PostalMime = Postal.default ?? Postal;
const [file, ...hex] = process.argv.slice(2);
const marks = hex.map(mark => Buffer.from(mark, 'hex'));
const found = content => content && marks.some(mark => Buffer.from(content).subarray(0, mark.length).equals(mark));
const within = (promise) => Promise.race([promise, new Promise((_, no) => setTimeout(no, 10000).unref())]);
const data = fs.readFileSync(file);
for (let at = 0; at < data.length;) {
  const size = data.readUInt32BE(at);
  const mail = data.subarray(at + 4, at + 4 + size);
  at += 4 + size;
  const readers = [];
  try {
    const read = await within(simpleParser(mail, { skipTextToHtml: true, skipTextLinks: true }));
    if (read.attachments.some(part => found(part.content)) || found(read.text)) readers.push('mailparser');
  } catch {}
  try {
    const read = await within(PostalMime.parse(mail));
    if (read.attachments.some(part => found(part.content)) || found(read.text)) readers.push('postal-mime');
  } catch {}
  console.log(readers.join(' '));
}
