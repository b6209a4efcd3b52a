require "vacation";
vacation :addresses "bob@y.example" "Away.";
=====
From: Ann Doe <ann@x.example>
To: bob@y.example
Subject: Hello
Message-ID: <1@x.example>
X-Auto-Response-Suppress: DR, AutoReply

x
=====
vacation to "tim@x.example", subject "Auto: Hello", again after 604800 seconds
  From: bob+lists@y.example
  To: tim@x.example
  Subject: Auto: Hello
  Date: Mon, 23 Nov 2026 11:33:20 +0100
  In-Reply-To: <1@x.example>
  References: <1@x.example>
  Auto-Submitted: auto-replied (vacation)
  X-Auto-Response-Suppress: All
  Precedence: bulk
  MIME-Version: 1.0
  Content-Type: text/plain; charset=utf-8
  Content-Transfer-Encoding: 8bit
  
  Away.
keep (implicit)
