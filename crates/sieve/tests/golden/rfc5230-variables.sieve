require ["vacation", "variables"];
if header :matches "subject" "*" { set "was" " (was: ${1})"; }
vacation :subject "Away${was}" "I read ${was} later.";
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>

x
=====
vacation to "tim@x.example", subject "Away (was: Hello)", again after 604800 seconds (not sent: the mail names no address of the recipient)
  handle "I read ${was} later.Away${was}<default-from><NO-MIME>"
  From: bob+lists@y.example
  To: tim@x.example
  Subject: Away (was: Hello)
  Date: Mon, 23 Nov 2026 11:33:20 +0100
  In-Reply-To: <1@x.example>
  References: <1@x.example>
  Auto-Submitted: auto-replied (vacation)
  X-Auto-Response-Suppress: All
  Precedence: bulk
  MIME-Version: 1.0
  Content-Type: text/plain; charset=utf-8
  Content-Transfer-Encoding: 8bit
  
  I read  (was: Hello) later.
keep (implicit)
