# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_sluice_global_optspecs
    string join \n c/config= h/help V/version
end

function __fish_sluice_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_sluice_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_sluice_using_subcommand
    set -l cmd (__fish_sluice_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c sluice -n "__fish_sluice_needs_command" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_needs_command" -s V -l version -d 'Print version'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "serve" -d 'Run the gateway, in the foreground'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "reload" -d 'Have a running gateway reload its configuration and signatures, and wait for the outcome'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "scan" -d 'Scan files and folders for viruses'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "mount" -d 'Mount a folder so that nothing infected is read from it or written to it'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "watch" -d 'Watch folders so that nothing infected is opened or run'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "explain" -d 'Show how the engine parses a file: the tree of objects, their types, sizes and findings, and the time spent'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "check" -d 'Check a configuration and the signatures that it loads'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "config" -d 'Show a configuration'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "intercept" -d 'Manage the nftables rules that redirect connections to transparent listeners'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "quarantine" -d 'List, show, release or delete quarantined messages'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "dkim" -d 'Make, list and rotate the DKIM keys that sign outgoing mail'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "dmarc" -d 'Read reports that other sites send about the mail of a domain'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "domain" -d 'Print and check the records that the DNS has to have for a domain whose mail is here'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "migrate" -d 'Translate the configuration of another program'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "sendmail" -d 'Take a mail from standard input, as cron, PHP, mutt and git hand it to sendmail'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "queue" -d 'List, retry, hold, release, delete or bounce queued mail'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "cluster" -d 'Show the machines that share a store, and move the store between them'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "log" -d 'Search the message log'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "database" -d 'Inspect, compile, search, test and verify signature files'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "update" -d 'Download new signatures as configured in `[update]`'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "top" -d 'Show live statistics of a running gateway: sessions, messages by action, throughput, latency, memory'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "recipients" -d 'Look up recipients, and show which table answers'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "lookup" -d 'Print what a table of `[[lookup]]` has for addresses or names: its rows, a line each'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "dnsbl" -d 'Serve DNS block lists (DNSBL) from rbldnsd zone files, or query the files'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "rules" -d 'Check SpamAssassin\'s rules: count those loaded, and print the errors'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "auth" -d 'Authenticate a mail: SPF, DKIM, DMARC and ARC'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "store" -d 'Manage a mail store: create, inspect and check it, import and export mail'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "account" -d 'Manage the accounts of a mail server: add, change and remove them'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "sieve" -d 'Manage users\' Sieve filters: check them, test them on a mail, and store them'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "mail" -d 'Find a mail in all mailboxes of a store, and remove it'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "who" -d 'Print the mailboxes of a store that have a mail, by its Message-ID: account, mailbox and UID, a line each'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "recall" -d 'Remove a mail from all mailboxes of a store, in one transaction, by its Message-ID'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "spam" -d 'Check mails with SpamAssassin\'s rules'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "web" -d 'Check pages with the lists of E2Guardian or DansGuardian, and check those lists'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "ids" -d 'Check intrusion rules of Suricata and Snort: count them, explain them, test them on captures'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "admin" -d 'Serve the administrator\'s page in a browser, and manage its people and tokens'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "learn" -d 'Train the spam filter with mails, and manage what it has learned'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "man" -d 'Print the man page, or write the man pages of all commands to a folder'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "completions" -d 'Print shell completions'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand serve" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l clamd-conf -d 'Replace clamd: read addresses, databases and limits from this `clamd.conf`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand serve" -s d -l database -d 'Load this signature file, or all files in this folder, in addition to the built-in test signatures; repeatable' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l cache -d 'Cache compiled signatures in this folder; `none`: compile them at every start. Default: $CACHE_DIRECTORY for a service (CacheDirectory= of systemd), ~/.cache/sluice for other commands and sets of more than 4 MiB' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l certificates -d 'Verify detached signatures (`.cvd.sign`) against these CA certificates, and refuse containers whose signature is invalid or untrusted; a file, or a folder of them' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l detect-pua -d 'Also load signatures of potentially unwanted applications (PUA)' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l include-pua -d 'Load only PUA signatures of this category, the second word of their names; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l exclude-pua -d 'Load no PUA signatures of this category; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l allow-root -d 'Keep running as root. Without this option, and without `user` in the configuration, starting as root is refused'
complete -c sluice -n "__fish_sluice_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand reload" -l pid -d 'The first process of the service. Without it: the one that systemd names in MAINPID, else the only one that runs' -r
complete -c sluice -n "__fish_sluice_using_subcommand reload" -l timeout -d 'Wait no longer than this for the outcome' -r
complete -c sluice -n "__fish_sluice_using_subcommand reload" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand reload" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s d -l database -d 'Load this signature file, or all files in this folder, in addition to the built-in test signatures; repeatable' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l cache -d 'Cache compiled signatures in this folder; `none`: compile them at every start. Default: $CACHE_DIRECTORY for a service (CacheDirectory= of systemd), ~/.cache/sluice for other commands and sets of more than 4 MiB' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l certificates -d 'Verify detached signatures (`.cvd.sign`) against these CA certificates, and refuse containers whose signature is invalid or untrusted; a file, or a folder of them' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l detect-pua -d 'Also load signatures of potentially unwanted applications (PUA)' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l include-pua -d 'Load only PUA signatures of this category, the second word of their names; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l exclude-pua -d 'Load no PUA signatures of this category; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s r -l recursive -d 'Scan folders recursively; `--recursive=no` scans only the files directly in the given folders' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s f -l file-list -d 'Also scan the files listed in this file, one per line' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l exclude -d 'Skip files whose path matches; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l exclude-dir -d 'Skip folders whose path matches; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l include -d 'Scan only files whose path matches; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l include-dir -d 'Scan only folders whose path matches; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-dir-recursion -d 'Maximum folder depth, counting the folders given here' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l cross-fs -d 'Scan folders on other file systems' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l follow-dir-symlinks -d 'Follow symbolic links to folders: 0 never, 1 those given here, 2 always' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l follow-file-symlinks -d 'Follow symbolic links to files: 0 never, 1 those given here, 2 always' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l alert-exceeds-max -d 'Report exceeded limits as found' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l alert-encrypted -l alert-encrypted-archive -l alert-encrypted-doc -d 'Report encrypted content as found' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s z -l allmatch -d 'Report every signature that matches in a file, not just the first' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-filesize -d 'Do not scan files larger than this; reported as a limit. Suffixes K, M and G; 0 means no limit' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-scansize -d 'Scan at most this much of a file; reported as a limit. 0 means all of it' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-scantime -d 'Scan a file for at most this long; reported as a limit. 0 means 120 seconds of CPU time, more for large files' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-recursion -d 'Maximum nesting of containers; 0 means the default' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-files -d 'Maximum number of objects in one file; 0 means 1,048,576' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l move -d 'Move infected files into this folder' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l copy -d 'Copy infected files into this folder' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l remove -d 'Remove infected files' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s l -l log -d 'Append what is printed to this file' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l fail-if-cvd-older-than -d 'Exit with status 2 without scanning if the newest ClamAV container is older than this, or there is none' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s j -l jobs -d 'Number of files scanned in parallel; 0 means one per core' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l state -d 'Remember in this folder which files were clean, and do not read them again until they or the signatures change; a scan that was interrupted goes on' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s x -l one-file-system -d 'Stay on the file systems of the given paths: `--cross-fs=no`'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l strict -d 'Also report exceeded limits, ambiguous content and encryption as found'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s i -l infected -d 'Print only infected files'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s o -l suppress-ok-results -d 'Do not print files that are OK'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l quiet -d 'Print errors only'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s a -l archive-verbose -d 'Print the path inside the file: `mail.eml » invoice.zip » a.exe`'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l json -d 'Print one JSON object per file, and no summary'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l csv -d 'Print comma-separated values with a header, one line per finding or clean file, and no summary'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l no-summary -d 'Print no summary'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l stdout -d 'Print errors to standard output, too'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l bell -d 'Ring the bell when something is found'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l mode -d 'When content is inspected: `regular`, while it is written in order, or else when it is complete; `full`, the whole file when it is closed, synced, renamed or opened by somebody else' -r -f -a "regular\t'As content passes'
full\t'Whole files'"
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l on-infected -d 'Handling of infected content: `immediate`, the write fails; `deferred`, the writer notices nothing, the file keeps its old content, and the quarantine gets the new one with the name of the writer. Reading fails in both' -r -f -a "immediate\t'An error'
deferred\t'Evidence'"
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l rules -d 'Where something else holds: rules by path, type, size and user, one a line' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l rescan -d 'Files to inspect in the background, at the start and with new signatures: `changed`, files found clean by other signatures or before a change behind the mount; `all`, files never inspected, too; `off`, none' -r -f -a "off\t'Nothing'
changed\t'Files inspected before'
all\t'Everything'"
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l threads -d 'Threads that answer the kernel; 0 means four per core, and at least 16. An inspection occupies one while it lasts' -r
complete -c sluice -n "__fish_sluice_using_subcommand mount" -s d -l database -d 'Load this signature file, or all files in this folder, in addition to the built-in test signatures; repeatable' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l cache -d 'Cache compiled signatures in this folder; `none`: compile them at every start. Default: $CACHE_DIRECTORY for a service (CacheDirectory= of systemd), ~/.cache/sluice for other commands and sets of more than 4 MiB' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l certificates -d 'Verify detached signatures (`.cvd.sign`) against these CA certificates, and refuse containers whose signature is invalid or untrusted; a file, or a folder of them' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l detect-pua -d 'Also load signatures of potentially unwanted applications (PUA)' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l include-pua -d 'Load only PUA signatures of this category, the second word of their names; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l exclude-pua -d 'Load no PUA signatures of this category; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l quarantine -d 'Keep infected content, with its user and process, in this folder outside of the inspected ones' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l state -d 'Remember in this folder which files are clean, from one start to the next' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l on-limit -d 'Answer about content that exceeds the limits of an inspection (depth, objects, processor time): `refuse` or `allow`' -r -f -a "refuse\t'An error'
allow\t'It passes'"
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l memory -d 'The memory that all inspections may hold; one may hold a quarter of it. Suffixes K, M and G' -r
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l stall -d 'How long an inspection may make no progress, in seconds. Then it has no verdict' -r
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l log-format -d 'How log lines are written: `human` or `json`' -r -f -a "human\t'For people'
json\t'One JSON object a line'"
complete -c sluice -n "__fish_sluice_using_subcommand mount" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l pass-all -d 'Pass everything, uninspected: what the mount costs by itself'
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l strict -d 'Refuse ambiguous, unopened and encrypted content, too'
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l no-isolation -d 'Inspect in this process, and not in processes that may do nothing else'
complete -c sluice -n "__fish_sluice_using_subcommand mount" -s b -l background -d 'Return after the start, and run in the background. The log continues if standard error is a file'
complete -c sluice -n "__fish_sluice_using_subcommand mount" -l detached -d 'Set by `--background` for what goes on'
complete -c sluice -n "__fish_sluice_using_subcommand mount" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l exclude -d 'Inspect nothing below this folder; repeatable' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l exclude-user -d 'Do not ask about what this user opens, by name or number; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l deadline -d 'How long a process waits for a verdict, in seconds' -r
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l on-deadline -d 'Answer to a process whose file has no verdict by then, or whose inspection failed: `refuse` or `allow`' -r -f -a "refuse\t'An error'
allow\t'It passes'"
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l threads -d 'Inspections at a time; 0 means four per core, and at least 16' -r
complete -c sluice -n "__fish_sluice_using_subcommand watch" -s d -l database -d 'Load this signature file, or all files in this folder, in addition to the built-in test signatures; repeatable' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l cache -d 'Cache compiled signatures in this folder; `none`: compile them at every start. Default: $CACHE_DIRECTORY for a service (CacheDirectory= of systemd), ~/.cache/sluice for other commands and sets of more than 4 MiB' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l certificates -d 'Verify detached signatures (`.cvd.sign`) against these CA certificates, and refuse containers whose signature is invalid or untrusted; a file, or a folder of them' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l detect-pua -d 'Also load signatures of potentially unwanted applications (PUA)' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l include-pua -d 'Load only PUA signatures of this category, the second word of their names; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l exclude-pua -d 'Load no PUA signatures of this category; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l quarantine -d 'Keep infected content, with its user and process, in this folder outside of the inspected ones' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l state -d 'Remember in this folder which files are clean, from one start to the next' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l on-limit -d 'Answer about content that exceeds the limits of an inspection (depth, objects, processor time): `refuse` or `allow`' -r -f -a "refuse\t'An error'
allow\t'It passes'"
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l memory -d 'The memory that all inspections may hold; one may hold a quarter of it. Suffixes K, M and G' -r
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l stall -d 'How long an inspection may make no progress, in seconds. Then it has no verdict' -r
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l log-format -d 'How log lines are written: `human` or `json`' -r -f -a "human\t'For people'
json\t'One JSON object a line'"
complete -c sluice -n "__fish_sluice_using_subcommand watch" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l only-log -d 'Refuse nothing; only log what is found'
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l strict -d 'Refuse ambiguous, unopened and encrypted content, too'
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l no-isolation -d 'Inspect in this process, and not in processes that may do nothing else'
complete -c sluice -n "__fish_sluice_using_subcommand watch" -s b -l background -d 'Return after the start, and run in the background. The log continues if standard error is a file'
complete -c sluice -n "__fish_sluice_using_subcommand watch" -l detached -d 'Set by `--background` for what goes on'
complete -c sluice -n "__fish_sluice_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand explain" -s d -l database -d 'Load this signature file, or all files in this folder, in addition to the built-in test signatures; repeatable' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l cache -d 'Cache compiled signatures in this folder; `none`: compile them at every start. Default: $CACHE_DIRECTORY for a service (CacheDirectory= of systemd), ~/.cache/sluice for other commands and sets of more than 4 MiB' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l certificates -d 'Verify detached signatures (`.cvd.sign`) against these CA certificates, and refuse containers whose signature is invalid or untrusted; a file, or a folder of them' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l detect-pua -d 'Also load signatures of potentially unwanted applications (PUA)' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l include-pua -d 'Load only PUA signatures of this category, the second word of their names; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l exclude-pua -d 'Load no PUA signatures of this category; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand explain" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l json -d 'Print one JSON object per line for each object'
complete -c sluice -n "__fish_sluice_using_subcommand explain" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand check" -s c -l config -d 'The configuration, as other commands name it' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand check" -l from -d 'Show the policy for a message from this sender; the empty string is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand check" -l to -d 'Show the policy for a message to this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand check" -l client -d 'Show the policy for a message from this client' -r
complete -c sluice -n "__fish_sluice_using_subcommand check" -l no-signatures -d 'Do not load the signatures, which may take the better part of a minute'
complete -c sluice -n "__fish_sluice_using_subcommand check" -s q -l quiet -d 'Print warnings and errors only'
complete -c sluice -n "__fish_sluice_using_subcommand check" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand config; and not __fish_seen_subcommand_from show help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand config; and not __fish_seen_subcommand_from show help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand config; and not __fish_seen_subcommand_from show help" -f -a "show" -d 'Print the keys that are set, with their values, files and lines, included files too. Without --all defaults are not printed'
complete -c sluice -n "__fish_sluice_using_subcommand config; and not __fish_seen_subcommand_from show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand config; and __fish_seen_subcommand_from show" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand config; and __fish_seen_subcommand_from show" -l all -d 'Print every key: those that are not set with their defaults. A default that depends on others is in brackets, in words'
complete -c sluice -n "__fish_sluice_using_subcommand config; and __fish_seen_subcommand_from show" -l changed -d 'Print only the keys whose values are not the defaults'
complete -c sluice -n "__fish_sluice_using_subcommand config; and __fish_seen_subcommand_from show" -l json -d 'Print a JSON object for each key, a line each'
complete -c sluice -n "__fish_sluice_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print the keys that are set, with their values, files and lines, included files too. Without --all defaults are not printed'
complete -c sluice -n "__fish_sluice_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -f -a "print" -d 'Print the rules for `nft -f`; the `ip` commands are in comments'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -f -a "install" -d 'Install the rules, replacing those installed before'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -f -a "remove" -d 'Remove the rules: connections reach their servers directly again'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from print" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from print" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from install" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from install" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from remove" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from help" -f -a "print" -d 'Print the rules for `nft -f`; the `ip` commands are in comments'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from help" -f -a "install" -d 'Install the rules, replacing those installed before'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Remove the rules: connections reach their servers directly again'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -s c -l config -d 'The configuration that names the quarantine folders' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -l folder -d 'Use this quarantine folder, and no configuration' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "list" -d 'List messages: id, date, state, size, sender, recipients, first finding'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "show" -d 'Show a message: its metadata and its header'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "release" -d 'Deliver messages to recipients that have not received them yet, with the original envelope and without another inspection. They stay in the quarantine, marked as released, until they are deleted or expire'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "train" -d 'Train a spam filter with messages, as configured in `[quarantine.train]`'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "delete" -d 'Delete messages'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l older -d 'Messages at least this old: 90s, 15m, 12h, 7d, 4w' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l newer -d 'Messages younger than this' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l from -d 'Messages whose sender contains this text; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l to -d 'Messages with a recipient that contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l found -d 'Messages with a finding that contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l state -d 'Messages in this state' -r -f -a "held\t'No recipient has the message'
partly\t'Some of its recipients have it'
released\t'All of its recipients have it'"
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -s c -l config -d 'The configuration that names the quarantine folders' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l json -d 'Print one JSON object per message'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from show" -s c -l config -d 'The configuration that names the quarantine folders' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from show" -l json -d 'Print the metadata as JSON'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from show" -l raw -d 'Print the message as it was received'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l older -d 'Messages at least this old: 90s, 15m, 12h, 7d, 4w' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l newer -d 'Messages younger than this' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l from -d 'Messages whose sender contains this text; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l to -d 'Messages with a recipient that contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l found -d 'Messages with a finding that contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l state -d 'Messages in this state' -r -f -a "held\t'No recipient has the message'
partly\t'Some of its recipients have it'
released\t'All of its recipients have it'"
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l hop -d 'Deliver to this next hop instead of the original one: smtp://HOST:PORT, lmtp:/PATH and so on' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -s c -l config -d 'The configuration that names the quarantine folders' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l again -d 'Deliver again to recipients that have received them'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l older -d 'Messages at least this old: 90s, 15m, 12h, 7d, 4w' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l newer -d 'Messages younger than this' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l from -d 'Messages whose sender contains this text; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l to -d 'Messages with a recipient that contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l found -d 'Messages with a finding that contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l state -d 'Messages in this state' -r -f -a "held\t'No recipient has the message'
partly\t'Some of its recipients have it'
released\t'All of its recipients have it'"
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -s c -l config -d 'The configuration that names the quarantine folders' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l json -d 'Print one JSON object per message'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l older -d 'Messages at least this old: 90s, 15m, 12h, 7d, 4w' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l newer -d 'Messages younger than this' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l from -d 'Messages whose sender contains this text; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l to -d 'Messages with a recipient that contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l found -d 'Messages with a finding that contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l state -d 'Messages in this state' -r -f -a "held\t'No recipient has the message'
partly\t'Some of its recipients have it'
released\t'All of its recipients have it'"
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -s c -l config -d 'The configuration that names the quarantine folders' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "list" -d 'List messages: id, date, state, size, sender, recipients, first finding'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show a message: its metadata and its header'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "release" -d 'Deliver messages to recipients that have not received them yet, with the original envelope and without another inspection. They stay in the quarantine, marked as released, until they are deleted or expire'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "train" -d 'Train a spam filter with messages, as configured in `[quarantine.train]`'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Delete messages'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and not __fish_seen_subcommand_from create rotate list remove help" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and not __fish_seen_subcommand_from create rotate list remove help" -l json -d 'Print JSON, an object a key'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and not __fish_seen_subcommand_from create rotate list remove help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and not __fish_seen_subcommand_from create rotate list remove help" -f -a "create" -d 'Make the first keys of a domain, RSA and Ed25519, and print the records that name them. They sign at once'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and not __fish_seen_subcommand_from create rotate list remove help" -f -a "rotate" -d 'Make further keys of a domain, which sign in a day: publish their records before'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and not __fish_seen_subcommand_from create rotate list remove help" -f -a "list" -d 'Print the records of all keys, and which sign'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and not __fish_seen_subcommand_from create rotate list remove help" -f -a "remove" -d 'Forget a key'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and not __fish_seen_subcommand_from create rotate list remove help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from create" -l selector -d 'The beginning of their names. [default: the date]' -r
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from create" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from create" -l json -d 'Print JSON, an object a key'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from rotate" -l selector -d 'The beginning of their names. [default: the date]' -r
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from rotate" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from rotate" -l json -d 'Print JSON, an object a key'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from rotate" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from list" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from list" -l json -d 'Print JSON, an object a key'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from remove" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from remove" -l json -d 'Print JSON, an object a key'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from help" -f -a "create" -d 'Make the first keys of a domain, RSA and Ed25519, and print the records that name them. They sign at once'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from help" -f -a "rotate" -d 'Make further keys of a domain, which sign in a day: publish their records before'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from help" -f -a "list" -d 'Print the records of all keys, and which sign'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Forget a key'
complete -c sluice -n "__fish_sluice_using_subcommand dkim; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand dmarc; and not __fish_seen_subcommand_from report help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dmarc; and not __fish_seen_subcommand_from report help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand dmarc; and not __fish_seen_subcommand_from report help" -f -a "report" -d 'Print the aggregate reports of files: XML, compressed or in an archive, or whole mails'
complete -c sluice -n "__fish_sluice_using_subcommand dmarc; and not __fish_seen_subcommand_from report help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand dmarc; and __fish_seen_subcommand_from report" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dmarc; and __fish_seen_subcommand_from report" -l json -d 'Print JSON, an object a report'
complete -c sluice -n "__fish_sluice_using_subcommand dmarc; and __fish_seen_subcommand_from report" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dmarc; and __fish_seen_subcommand_from help" -f -a "report" -d 'Print the aggregate reports of files: XML, compressed or in an archive, or whole mails'
complete -c sluice -n "__fish_sluice_using_subcommand dmarc; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and not __fish_seen_subcommand_from add check help" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand domain; and not __fish_seen_subcommand_from add check help" -l json -d 'Print JSON, an object a record'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and not __fish_seen_subcommand_from add check help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and not __fish_seen_subcommand_from add check help" -f -a "add" -d 'Make the keys of a domain that has none, and print the records that the DNS has to have, as lines of a zone'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and not __fish_seen_subcommand_from add check help" -f -a "check" -d 'Look up the records of a domain, and say which are missing or other than they have to be'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and not __fish_seen_subcommand_from add check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from add" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from add" -l json -d 'Print JSON, an object a record'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from check" -l resolver -d 'Ask this resolver. [default: those of `/etc/resolv.conf`]' -r
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from check" -l zone -d 'Take the records of this file, lines of a zone, in the place of the DNS' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from check" -l timeout -d 'How long answers are waited for, in seconds' -r
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from check" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from check" -l json -d 'Print JSON, an object a record'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from help" -f -a "add" -d 'Make the keys of a domain that has none, and print the records that the DNS has to have, as lines of a zone'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from help" -f -a "check" -d 'Look up the records of a domain, and say which are missing or other than they have to be'
complete -c sluice -n "__fish_sluice_using_subcommand domain; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand migrate; and not __fish_seen_subcommand_from postfix help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand migrate; and not __fish_seen_subcommand_from postfix help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand migrate; and not __fish_seen_subcommand_from postfix help" -f -a "postfix" -d 'Read Postfix\'s main.cf, master.cf and tables, and print a sluice.toml, in which each line says where it comes from; what is not translated stands at its end, with file, line and reason'
complete -c sluice -n "__fish_sluice_using_subcommand migrate; and not __fish_seen_subcommand_from postfix help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand migrate; and __fish_seen_subcommand_from postfix" -s o -l output -d 'Write the configuration to this new file, which only its owner may read' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand migrate; and __fish_seen_subcommand_from postfix" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand migrate; and __fish_seen_subcommand_from postfix" -l json -d 'Print what is not translated as JSON, in place of the configuration'
complete -c sluice -n "__fish_sluice_using_subcommand migrate; and __fish_seen_subcommand_from postfix" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand migrate; and __fish_seen_subcommand_from help" -f -a "postfix" -d 'Read Postfix\'s main.cf, master.cf and tables, and print a sluice.toml, in which each line says where it comes from; what is not translated stands at its end, with file, line and reason'
complete -c sluice -n "__fish_sluice_using_subcommand migrate; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand sendmail" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "list" -d 'Print the queue, a line for each mail and recipient: number, sender, recipient, age, attempts, next attempt, and the last error'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "show" -d 'Print all facts about mails, a JSON object each'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "why" -d 'Print why mails wait: the last reply, the next attempt, and the rest of their host'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "retry" -d 'Retry mails now, even if their host rests'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "flush" -d 'Retry all queued mails now'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "hold" -d 'Hold mails until they are released'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "release" -d 'Release held mails'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "delete" -d 'Delete mails, without a notification'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "bounce" -d 'Bounce mails now: their senders are notified'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "suppress" -d 'Print or change the list of recipients that get no more mail of accounts'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and not __fish_seen_subcommand_from list show why retry flush hold release delete bounce suppress help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -l sender -d 'Mails of this sender or account; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -l recipient -d 'Mails for this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -l domain -d 'Mails for recipients in this domain' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -l age -d 'Mails that have waited at least this long: 90s, 15m, 4h, 2d' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -l reason -d 'Mails whose last error contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -l all -d 'All queued mails: for hold, delete and bounce without another condition'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -l held -d 'That are held'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -l sender -d 'Mails of this sender or account; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -l recipient -d 'Mails for this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -l domain -d 'Mails for recipients in this domain' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -l age -d 'Mails that have waited at least this long: 90s, 15m, 4h, 2d' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -l reason -d 'Mails whose last error contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -l all -d 'All queued mails: for hold, delete and bounce without another condition'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -l held -d 'That are held'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -l sender -d 'Mails of this sender or account; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -l recipient -d 'Mails for this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -l domain -d 'Mails for recipients in this domain' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -l age -d 'Mails that have waited at least this long: 90s, 15m, 4h, 2d' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -l reason -d 'Mails whose last error contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -l all -d 'All queued mails: for hold, delete and bounce without another condition'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -l held -d 'That are held'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from why" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -l sender -d 'Mails of this sender or account; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -l recipient -d 'Mails for this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -l domain -d 'Mails for recipients in this domain' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -l age -d 'Mails that have waited at least this long: 90s, 15m, 4h, 2d' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -l reason -d 'Mails whose last error contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -l all -d 'All queued mails: for hold, delete and bounce without another condition'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -l held -d 'That are held'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from retry" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -l sender -d 'Mails of this sender or account; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -l recipient -d 'Mails for this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -l domain -d 'Mails for recipients in this domain' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -l age -d 'Mails that have waited at least this long: 90s, 15m, 4h, 2d' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -l reason -d 'Mails whose last error contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -l all -d 'All queued mails: for hold, delete and bounce without another condition'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -l held -d 'That are held'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from flush" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -l sender -d 'Mails of this sender or account; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -l recipient -d 'Mails for this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -l domain -d 'Mails for recipients in this domain' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -l age -d 'Mails that have waited at least this long: 90s, 15m, 4h, 2d' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -l reason -d 'Mails whose last error contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -l all -d 'All queued mails: for hold, delete and bounce without another condition'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -l held -d 'That are held'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from hold" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -l sender -d 'Mails of this sender or account; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -l recipient -d 'Mails for this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -l domain -d 'Mails for recipients in this domain' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -l age -d 'Mails that have waited at least this long: 90s, 15m, 4h, 2d' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -l reason -d 'Mails whose last error contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -l all -d 'All queued mails: for hold, delete and bounce without another condition'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -l held -d 'That are held'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from release" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -l sender -d 'Mails of this sender or account; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -l recipient -d 'Mails for this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -l domain -d 'Mails for recipients in this domain' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -l age -d 'Mails that have waited at least this long: 90s, 15m, 4h, 2d' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -l reason -d 'Mails whose last error contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -l all -d 'All queued mails: for hold, delete and bounce without another condition'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -l held -d 'That are held'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -l sender -d 'Mails of this sender or account; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -l recipient -d 'Mails for this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -l domain -d 'Mails for recipients in this domain' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -l age -d 'Mails that have waited at least this long: 90s, 15m, 4h, 2d' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -l reason -d 'Mails whose last error contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -l all -d 'All queued mails: for hold, delete and bounce without another condition'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -l held -d 'That are held'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from bounce" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress" -f -a "list" -d 'Print the suppressed recipients, since when, and why. Exit status: 1 if there is none'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress" -f -a "add" -d 'Suppress recipients: accounts cannot send to them'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress" -f -a "delete" -d 'Delete recipients from the list. Exit status: 1 if none was on it'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "list" -d 'Print the queue, a line for each mail and recipient: number, sender, recipient, age, attempts, next attempt, and the last error'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print all facts about mails, a JSON object each'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "why" -d 'Print why mails wait: the last reply, the next attempt, and the rest of their host'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "retry" -d 'Retry mails now, even if their host rests'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "flush" -d 'Retry all queued mails now'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "hold" -d 'Hold mails until they are released'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "release" -d 'Release held mails'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Delete mails, without a notification'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "bounce" -d 'Bounce mails now: their senders are notified'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "suppress" -d 'Print or change the list of recipients that get no more mail of accounts'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -f -a "status" -d 'Print the nodes, which of them has the store, and how far the others follow'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -f -a "check" -d 'Say whether this machine can be a node: database, standbys, secret, other nodes. Exit status: 0 it can, 1 something is wrong'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -f -a "drain" -d 'Make a node give up the store before it is upgraded or shut down: another node takes it without waiting for the lease'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -f -a "move" -d 'Have a node own the store'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -f -a "documents" -d 'Print the files that all nodes have alike: version, size, last change, and whether this machine has it. Exit status: 1 if a node is behind'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -f -a "share" -d 'Make documents of this machine\'s files where there are none yet: accounts, DKIM keys, certificates by ACME, and those of [cluster] documents. Its server must run'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -f -a "import" -d 'Copy the store of one machine to the database of a cluster without a store. No server may have it open'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -f -a "export" -d 'Write the store of the cluster to a file that one machine can serve, as of the last flush: a backup, or the way back'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and not __fish_seen_subcommand_from status check drain move documents share import export help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from status" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from status" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from check" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from check" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from drain" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from drain" -l undo -d 'Allow the node to own the store again'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from drain" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from drain" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from move" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from move" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from move" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from documents" -l get -d 'Print the text of this document instead' -r
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from documents" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from documents" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from documents" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from share" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from share" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from share" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from import" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from import" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from export" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from export" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "status" -d 'Print the nodes, which of them has the store, and how far the others follow'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "check" -d 'Say whether this machine can be a node: database, standbys, secret, other nodes. Exit status: 0 it can, 1 something is wrong'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "drain" -d 'Make a node give up the store before it is upgraded or shut down: another node takes it without waiting for the lease'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "move" -d 'Have a node own the store'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "documents" -d 'Print the files that all nodes have alike: version, size, last change, and whether this machine has it. Exit status: 1 if a node is behind'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "share" -d 'Make documents of this machine\'s files where there are none yet: accounts, DKIM keys, certificates by ACME, and those of [cluster] documents. Its server must run'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "import" -d 'Copy the store of one machine to the database of a cluster without a store. No server may have it open'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "export" -d 'Write the store of the cluster to a file that one machine can serve, as of the last flush: a backup, or the way back'
complete -c sluice -n "__fish_sluice_using_subcommand cluster; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand log" -l id -d 'The message with this id' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l message-id -d 'The Message-ID contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l address -d 'Sender, recipients or client contain this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l from -d 'The sender contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l to -d 'The recipients contain this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l action -d 'The action: pass, tag, blank, quarantine or reject' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l found -d 'A finding contains this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l since -d 'At or after this time (UTC), in full or abbreviated: 2026-11-21 or 2026-11-21T20:15' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l until -d 'Before this time' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand log" -l spam -d 'Only mail that the spam rules take for spam'
complete -c sluice -n "__fish_sluice_using_subcommand log" -l json -d 'Print the matching lines unchanged'
complete -c sluice -n "__fish_sluice_using_subcommand log" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "info" -d 'Load signatures and print statistics: how many are loaded, how exactly they match, and which are not loaded and why'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "compile" -d 'Compile signatures to one file, which `scan` with the same paths or `serve` with the same configuration maps'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "worker" -d 'The sandboxed process of `compile`'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "find" -d 'Print the signatures whose name contains this text. Exit status 1: none'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "test" -d 'Test one signature, or one database file, against a file and everything in it. Exit status as for `scan`'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "verify" -d 'Verify each file\'s signature and print the signer. Exit status 2: at least one is invalid'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from info" -s c -l config -d 'The signatures of this configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from info" -l refused -d 'List each signature that is not loaded'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from info" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from info" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -s c -l config -d 'Compile the signatures of this configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l cache -d 'The folder of compiled signatures' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l certificates -d 'CA certificates for detached signatures (`.cvd.sign`)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l detect-pua -d 'Also load signatures of potentially unwanted applications (PUA)' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l include-pua -d 'Load only PUA signatures of this category, the second word of their names; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l exclude-pua -d 'Load no PUA signatures of this category; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from worker" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from worker" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from worker" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from find" -s c -l config -d 'The signatures of this configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from find" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from find" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from test" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from test" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from test" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from verify" -s c -l config -d 'The signatures of this configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from verify" -l certificates -d 'CA certificates for detached signatures (`.cvd.sign`)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from verify" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "info" -d 'Load signatures and print statistics: how many are loaded, how exactly they match, and which are not loaded and why'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "compile" -d 'Compile signatures to one file, which `scan` with the same paths or `serve` with the same configuration maps'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "worker" -d 'The sandboxed process of `compile`'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "find" -d 'Print the signatures whose name contains this text. Exit status 1: none'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "test" -d 'Test one signature, or one database file, against a file and everything in it. Exit status as for `scan`'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Verify each file\'s signature and print the signer. Exit status 2: at least one is invalid'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand update" -s c -l config -d 'The configuration. [default: /etc/sluice/sluice.toml, without --freshclam-conf]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand update" -l freshclam-conf -d 'Replace freshclam: read folder, mirror and databases from this `freshclam.conf`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand update" -l force -d 'Also retry files that failed recently'
complete -c sluice -n "__fish_sluice_using_subcommand update" -l rollback -d 'Download nothing; restore the previous signatures and intrusion rules'
complete -c sluice -n "__fish_sluice_using_subcommand update" -l dry-run -d 'Fetch intrusion rules, print those that are new, gone or changed, and install nothing'
complete -c sluice -n "__fish_sluice_using_subcommand update" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand top" -s c -l config -d 'The configuration with the metrics endpoint' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand top" -l metrics -d 'Use this metrics endpoint, and no configuration' -r
complete -c sluice -n "__fish_sluice_using_subcommand top" -l every -d 'Refresh interval in seconds' -r
complete -c sluice -n "__fish_sluice_using_subcommand top" -l count -d 'Number of pages; 0 means no limit' -r
complete -c sluice -n "__fish_sluice_using_subcommand top" -l json -d 'Print the metrics of each page as one JSON object per line'
complete -c sluice -n "__fish_sluice_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand recipients; and not __fish_seen_subcommand_from check help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand recipients; and not __fish_seen_subcommand_from check help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand recipients; and not __fish_seen_subcommand_from check help" -f -a "check" -d 'Look up addresses as a listener would at RCPT: print its reply, and the table and line that decide'
complete -c sluice -n "__fish_sluice_using_subcommand recipients; and not __fish_seen_subcommand_from check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand recipients; and __fish_seen_subcommand_from check" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand recipients; and __fish_seen_subcommand_from check" -l json -d 'Print one JSON object a line, for each address and listener'
complete -c sluice -n "__fish_sluice_using_subcommand recipients; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand recipients; and __fish_seen_subcommand_from help" -f -a "check" -d 'Look up addresses as a listener would at RCPT: print its reply, and the table and line that decide'
complete -c sluice -n "__fish_sluice_using_subcommand recipients; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand lookup" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand lookup" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation publish fetch help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation publish fetch help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation publish fetch help" -f -a "serve" -d 'Run the DNS server, in the foreground'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation publish fetch help" -f -a "check" -d 'Check zone files and print statistics and errors. Exit status: 0 no errors, 1 bad lines, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation publish fetch help" -f -a "why" -d 'Show why an address or name is listed. Exit status: 0 listed, 1 not listed, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation publish fetch help" -f -a "reputation" -d 'Keep a local reputation database: record events of addresses, and generate zone files'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation publish fetch help" -f -a "publish" -d 'Publish a list as signed files for a web server: the newest version, and what changed since older ones'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation publish fetch help" -f -a "fetch" -d 'Fetch a published list, verify its signature, and replace the local file'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation publish fetch help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -s c -l config -d 'Read options that are not given here from [dnsbl] in this configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -s l -l listen -d 'Listen on this address, UDP and TCP; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -s z -l zone -d 'A zone in rbldnsd\'s notation; repeatable. Types: ip4set, ip4trie, ip4tset, ip6trie, ip6tset, dnset, generic, combined, acl, and feed for plain lists' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l check -d 'Check the files for changes every so many seconds; 0: only on SIGHUP. Default 60' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l threads -d 'Number of event loops; default one per core' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l metrics -d 'Serve metrics over HTTP on this address' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l transfer-to -d 'Allow zone transfers (AXFR) to these networks; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l notify -d 'Send NOTIFY to this secondary when a zone changes; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l user -d 'Switch to this user if started as root; default nobody' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l aaaa -d 'Answer AAAA queries for half a /24 with a bitmap'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l no-prefixes -d 'Disable prefix answers'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l allow-root -d 'Keep running as root'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from check" -s z -l zone -d 'A zone; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from check" -s c -l config -d 'The zones of this configuration (`[dnsbl]`)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from why" -s z -l zone -d 'A zone; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from why" -s c -l config -d 'The zones of this configuration (`[dnsbl]`)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from why" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -l folder -d 'The folder with the event log and the zone files `ip4` (ip4set) and `ip6` (ip6trie)' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -l half-life -d 'Half-life of a score in seconds; default one day' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -l threshold -d 'Score at which an address is listed; default 5' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "note" -d 'Record an event: trust, harvest, spam or infected'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "standing" -d 'Show the score of an address, and why. Exit status: 0 listed, 1 not listed, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "why" -d 'Show the score of an address, and why. Exit status: 0 listed, 1 not listed, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "forgive" -d 'Delete all events of an address. Exit status: 0 deleted, 1 there were none, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "forget" -d 'Regenerate the zone files without decayed events'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from publish" -l name -d 'Name of the list: lower-case letters, digits, dots, hyphens and underscores' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from publish" -l key -d 'The Ed25519 private key, as `openssl genpkey -algorithm ed25519` makes it' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from publish" -l folder -d 'The folder that the web server serves' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from publish" -l keep -d 'For how many older versions there are deltas' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from publish" -l expires -d 'Seconds after which this version expires unless a newer one is published' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from publish" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from publish" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from fetch" -l key -d 'The publisher\'s Ed25519 public key, as `openssl pkey -pubout` writes it' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from fetch" -l folder -d 'The folder of the local file, NAME' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from fetch" -l bytes-max -d 'The largest list that is accepted, in bytes' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from fetch" -l authorities -d 'Certificates of the authorities that servers are verified with' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from fetch" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from fetch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Run the DNS server, in the foreground'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check zone files and print statistics and errors. Exit status: 0 no errors, 1 bad lines, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "why" -d 'Show why an address or name is listed. Exit status: 0 listed, 1 not listed, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "reputation" -d 'Keep a local reputation database: record events of addresses, and generate zone files'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "publish" -d 'Publish a list as signed files for a web server: the newest version, and what changed since older ones'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "fetch" -d 'Fetch a published list, verify its signature, and replace the local file'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand rules; and not __fish_seen_subcommand_from lint help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand rules; and not __fish_seen_subcommand_from lint help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand rules; and not __fish_seen_subcommand_from lint help" -f -a "lint" -d 'Read a configuration of SpamAssassin, count its rules, and print errors and rules that cannot hit'
complete -c sluice -n "__fish_sluice_using_subcommand rules; and not __fish_seen_subcommand_from lint help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand rules; and __fish_seen_subcommand_from lint" -s c -l config -d 'Read the rules of this configuration (`rules` in `[spam]`), those of `[spam.reputation]` and `[spam.fuzzy]` too' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand rules; and __fish_seen_subcommand_from lint" -l rules -d 'Read this folder, repeatable; later folders override earlier ones. Without it: the rules that sa-update has fetched or those of the package, /etc/spamassassin, and /etc/sluice/spam' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand rules; and __fish_seen_subcommand_from lint" -l all -d 'Name each rule that cannot hit, and print notes besides errors'
complete -c sluice -n "__fish_sluice_using_subcommand rules; and __fish_seen_subcommand_from lint" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand rules; and __fish_seen_subcommand_from lint" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand rules; and __fish_seen_subcommand_from help" -f -a "lint" -d 'Read a configuration of SpamAssassin, count its rules, and print errors and rules that cannot hit'
complete -c sluice -n "__fish_sluice_using_subcommand rules; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand auth; and not __fish_seen_subcommand_from check help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand auth; and not __fish_seen_subcommand_from check help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand auth; and not __fish_seen_subcommand_from check help" -f -a "check" -d 'Check a mail as it came in, and print what Authentication-Results would say, a result a line'
complete -c sluice -n "__fish_sluice_using_subcommand auth; and not __fish_seen_subcommand_from check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -s c -l config -d 'Ask the resolvers of this configuration (`[dns]`), unless others are given' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -l client -d 'The address of the client that sent it. Without it, SPF is not checked' -r
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -l helo -d 'Name in the client\'s HELO or EHLO' -r
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -l from -d 'The envelope\'s sender; without it, the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -l receiver -d 'The receiver\'s name in the results' -r
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -l resolver -d 'Ask this resolver, repeatable; without it, those of /etc/resolv.conf' -r
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -l zone -d 'Answer look-ups from this zone file. A line is NAME TYPE DATA, with TTL and IN before TYPE if wanted, or NAME SERVFAIL' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -l time -d 'Check as at this time, in seconds since 1970; without it, now' -r
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -l timeout -d 'Timeout of all look-ups; unanswered ones are temporary errors' -r
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check a mail as it came in, and print what Authentication-Results would say, a result a line'
complete -c sluice -n "__fish_sluice_using_subcommand auth; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "create" -d 'Make an empty store: a file that is allocated whole, or all of a block device'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "stat" -d 'Print how full a store is'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "check" -d 'Read all of a store and print what is damaged. Exit status: 0 undamaged, 1 damaged, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "deliver" -d 'Deliver mails to accounts, each stored once. A line is printed for each recipient when the mail is on stable storage'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "import" -d 'Import a Maildir, with its subfolders, or an mbox'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "export" -d 'Export mailboxes to Maildir folders or mbox files, also while a server has the store open: a backup'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "ls" -d 'List accounts, an account\'s mailboxes, or a mailbox\'s messages'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "cat" -d 'Print a message'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "acl" -d 'Print or change the access list of a mailbox (RFC 4314): without WHO, print it, a line for each entry'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "serve" -d 'Run a mail server on a store: LMTP in, POP3 and IMAP out. Ends at SIGTERM'
complete -c sluice -n "__fish_sluice_using_subcommand store; and not __fish_seen_subcommand_from create stat check deliver import export ls cat acl serve help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from create" -l size -d 'The size of the file' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from create" -l segment -d 'The size of a segment: a multiple of 4K, 16K to 1G. Default: 16M, and less for a store below 256M' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from create" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from stat" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from stat" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from stat" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from stat" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from check" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from check" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from check" -l salvage -d 'Pass over damaged transactions, which keep the store from being opened; mail programs then fetch all mailboxes anew'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from deliver" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from deliver" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from deliver" -l to -d 'An account that gets it, repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from deliver" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from import" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from import" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from import" -l account -d 'The account that gets the mails' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from import" -l mailbox -d 'The mailbox that gets them; without it, INBOX and the names of subfolders' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from export" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from export" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from export" -l account -d 'The account. Without it all accounts are exported, each to a folder of its own' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from export" -l mailbox -d 'Only this mailbox' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from export" -l format -d 'Format to write' -r -f -a "maildir\t'A file for each mail'
mbox\t'A file for each mailbox (mboxrd)'"
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from export" -l incremental -d 'Bring the folder of an earlier run up to date: mails that are there are not written again, their flags are those of now, and mails that were removed since are removed there, too'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from ls" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from ls" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from ls" -l json -d 'Print a JSON object for each line'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from ls" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from cat" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from cat" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from cat" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from acl" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from acl" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from acl" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l lmtp -d 'Listen here for LMTP; repeatable, as the others' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l pop3 -d 'Listen here for POP3' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l imap -d 'Listen here for IMAP' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l sieve -d 'Listen here for ManageSieve' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l webmail -d 'Listen here for the webmail, by HTTP' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l accounts -d 'Accounts that may log in, see `sluice account`. If the file is not there it is made, with one account, whose password is printed. [default: VOLUME.accounts]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l hostname -d 'Hostname of the server. [default: the name of this machine]' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l relay -d 'Next hop of mail that users write in the webmail, that their scripts redirect, and of answers: mx for the mail servers of the recipients, or smtp://HOST:PORT. Without it, mail that a script redirects stays in the INBOX, and no answers are sent' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l sieve-before -d 'A script that runs before each account\'s own, which runs only if this one keeps the mail' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l sieve-after -d 'A script that runs after each account\'s own, if that keeps the mail' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l sieve-global -d 'A folder with scripts, NAME.sieve, that all may include: include :global "NAME"' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l message-bytes-max -d 'The largest message' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l sessions-max -d 'Maximum number of simultaneous sessions; further clients are refused' -r
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l no-search-index -d 'Keep no search index: searches read the mails'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -l no-junk -d 'Deliver spam like other mail, not to the mailbox for spam'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "create" -d 'Make an empty store: a file that is allocated whole, or all of a block device'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "stat" -d 'Print how full a store is'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "check" -d 'Read all of a store and print what is damaged. Exit status: 0 undamaged, 1 damaged, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "deliver" -d 'Deliver mails to accounts, each stored once. A line is printed for each recipient when the mail is on stable storage'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "import" -d 'Import a Maildir, with its subfolders, or an mbox'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "export" -d 'Export mailboxes to Maildir folders or mbox files, also while a server has the store open: a backup'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "ls" -d 'List accounts, an account\'s mailboxes, or a mailbox\'s messages'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "cat" -d 'Print a message'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "acl" -d 'Print or change the access list of a mailbox (RFC 4314): without WHO, print it, a line for each entry'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Run a mail server on a store: LMTP in, POP3 and IMAP out. Ends at SIGTERM'
complete -c sluice -n "__fish_sluice_using_subcommand store; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -l accounts -d 'The file with the accounts. [default: that of [store] in the configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "add" -d 'Add an account. Its password is read from the standard input; on a terminal one is made and printed'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "passwd" -d 'Change a password, which is read as for `add`'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "remove" -d 'Remove an account. Its mail stays in the store'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "disable" -d 'Disable logins to an account. Its mail is still delivered, and open connections stay open'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "enable" -d 'Enable logins to an account again'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "reset" -d 'Remove the second step and the passkeys of an account\'s login, if they are lost. Needs a running server'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "app-password" -d 'Make, list and withdraw passwords for programs, which log in with them but at the webmail. Needs a server that runs'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "quota" -d 'Set the bytes of mail that an account may have; 0 is no bound'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "alias" -d 'Set the aliases of an account, in place of the present ones; none removes all'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "list" -d 'List all accounts, with quota and aliases'
complete -c sluice -n "__fish_sluice_using_subcommand account; and not __fish_seen_subcommand_from add passwd remove disable enable reset app-password quota alias list help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from add" -l quota -d 'Quota in bytes. [default: none]' -r
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from add" -l alias -d 'Another address of the account, repeatable; @DOMAIN is all of a domain' -r
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from add" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from passwd" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from passwd" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from remove" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from disable" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from disable" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from enable" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from enable" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from reset" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from reset" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password" -f -a "add" -d 'Make an app password for a program, and print it once'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password" -f -a "list" -d 'List those of an account: number, name, protocols, last use'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password" -f -a "delete" -d 'Withdraw one. Connections that are open stay open'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from quota" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from quota" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from alias" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from alias" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from list" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "add" -d 'Add an account. Its password is read from the standard input; on a terminal one is made and printed'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "passwd" -d 'Change a password, which is read as for `add`'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Remove an account. Its mail stays in the store'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "disable" -d 'Disable logins to an account. Its mail is still delivered, and open connections stay open'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "enable" -d 'Enable logins to an account again'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "reset" -d 'Remove the second step and the passkeys of an account\'s login, if they are lost. Needs a running server'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "app-password" -d 'Make, list and withdraw passwords for programs, which log in with them but at the webmail. Needs a server that runs'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "quota" -d 'Set the bytes of mail that an account may have; 0 is no bound'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "alias" -d 'Set the aliases of an account, in place of the present ones; none removes all'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "list" -d 'List all accounts, with quota and aliases'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and not __fish_seen_subcommand_from check test list put get activate delete help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and not __fish_seen_subcommand_from check test list put get activate delete help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and not __fish_seen_subcommand_from check test list put get activate delete help" -f -a "check" -d 'Check scripts: what is wrong with one is printed with its line and column'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and not __fish_seen_subcommand_from check test list put get activate delete help" -f -a "test" -d 'Run a script over a mail and print what it would do, an action a line; nothing of it is done'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and not __fish_seen_subcommand_from check test list put get activate delete help" -f -a "list" -d 'List the scripts of an account in a mail store; the active one is marked'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and not __fish_seen_subcommand_from check test list put get activate delete help" -f -a "put" -d 'Check a script and keep it in a mail store, in place of one of that name'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and not __fish_seen_subcommand_from check test list put get activate delete help" -f -a "get" -d 'Print a script of an account'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and not __fish_seen_subcommand_from check test list put get activate delete help" -f -a "activate" -d 'Make a script the one that runs when mail comes; without a name, none'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and not __fish_seen_subcommand_from check test list put get activate delete help" -f -a "delete" -d 'Remove a script that is not active'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and not __fish_seen_subcommand_from check test list put get activate delete help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from check" -l folder -d 'The scripts that `include` finds: NAME.sieve here, and global/NAME.sieve for `:global`' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from check" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -l folder -d 'The scripts that `include` finds: NAME.sieve here, and global/NAME.sieve for `:global`' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -l from -d 'The envelope\'s sender; without it, the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -l to -d 'The envelope\'s recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -l mailbox -d 'A mailbox that is there, as `mailboxexists` asks; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -l spam -d 'Probability of spam in percent, for `spamtest`; without it, the mail is untested' -r
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -l virus -d 'Result of a virus check, as `virustest` counts: 0 not checked, 1 clean, up to 5' -r
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -l time -d 'Run as at this time, in seconds since 1970; without it, now' -r
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -s o -l output -d 'Write to this file in place of the standard output' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from test" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from list" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from list" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from put" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from put" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from put" -l activate -d 'Activate the script'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from put" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from get" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from get" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from get" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from activate" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from activate" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from activate" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from delete" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from delete" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check scripts: what is wrong with one is printed with its line and column'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from help" -f -a "test" -d 'Run a script over a mail and print what it would do, an action a line; nothing of it is done'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the scripts of an account in a mail store; the active one is marked'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from help" -f -a "put" -d 'Check a script and keep it in a mail store, in place of one of that name'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from help" -f -a "get" -d 'Print a script of an account'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from help" -f -a "activate" -d 'Make a script the one that runs when mail comes; without a name, none'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Remove a script that is not active'
complete -c sluice -n "__fish_sluice_using_subcommand sieve; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and not __fish_seen_subcommand_from who recall help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand mail; and not __fish_seen_subcommand_from who recall help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and not __fish_seen_subcommand_from who recall help" -f -a "who" -d 'Print the mailboxes of a store that have a mail, by its Message-ID: the same as `sluice who`'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and not __fish_seen_subcommand_from who recall help" -f -a "recall" -d 'Remove a mail from all mailboxes of a store, by its Message-ID: the same as `sluice recall`'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and not __fish_seen_subcommand_from who recall help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from who" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from who" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from who" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from who" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from recall" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from recall" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from recall" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from recall" -l yes -d 'Remove it'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from recall" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from help" -f -a "who" -d 'Print the mailboxes of a store that have a mail, by its Message-ID: the same as `sluice who`'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from help" -f -a "recall" -d 'Remove a mail from all mailboxes of a store, by its Message-ID: the same as `sluice recall`'
complete -c sluice -n "__fish_sluice_using_subcommand mail; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand who" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand who" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand who" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand who" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand recall" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand recall" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand recall" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand recall" -l yes -d 'Remove it'
complete -c sluice -n "__fish_sluice_using_subcommand recall" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand spam; and not __fish_seen_subcommand_from check help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand spam; and not __fish_seen_subcommand_from check help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand spam; and not __fish_seen_subcommand_from check help" -f -a "check" -d 'Check mails: which rules hit, and the score that they add up to'
complete -c sluice -n "__fish_sluice_using_subcommand spam; and not __fish_seen_subcommand_from check help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l resolver -d 'Ask this resolver, repeatable; without it, those of /etc/resolv.conf' -r
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l zone -d 'Answer look-ups from this zone file. A line is NAME TYPE DATA, with TTL and IN before TYPE if wanted, or NAME SERVFAIL' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l timeout -d 'Timeout of all look-ups for one mail; an unanswered list counts as not listing' -r
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -s c -l config -d 'Check as the server of this configuration does, with its rules, ledger, resolvers and required score (`[spam]`, `[dns]`), but for what other options say' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l ledger -d 'Use the ledger of sluice learn in this folder' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l user -d 'Use the lessons of this user; without it, those of the site' -r
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l prefs -d 'Apply this file of preferences (user_prefs); its errors are printed with file and line' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l rules -d 'Read the rules of this folder, repeatable; later folders override earlier ones. Without it: the rules that sa- update has fetched or those of the package, /etc/spamassassin, and /etc/sluice/spam' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l json -d 'Print a JSON object for each mail, a line each'
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l local -d 'Query no network: network rules do not run, and the scores are those without them'
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l note -d 'Note in the ledger what the sender of each mail is known for, as a door does (use_txrep in the rules)'
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -l matches -d 'Show what each expression matched'
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check mails: which rules hit, and the score that they add up to'
complete -c sluice -n "__fish_sluice_using_subcommand spam; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand web; and not __fish_seen_subcommand_from check lint ca help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand web; and not __fish_seen_subcommand_from check lint ca help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand web; and not __fish_seen_subcommand_from check lint ca help" -f -a "check" -d 'Check pages: their score by the phrases of a group, and what the group would do with them'
complete -c sluice -n "__fish_sluice_using_subcommand web; and not __fish_seen_subcommand_from check lint ca help" -f -a "lint" -d 'Read a configuration, count what it holds, and name the lines that are not understood or can never match'
complete -c sluice -n "__fish_sluice_using_subcommand web; and not __fish_seen_subcommand_from check lint ca help" -f -a "ca" -d 'The authority by which doors with `https = "inspect"` show certificates of their own'
complete -c sluice -n "__fish_sluice_using_subcommand web; and not __fish_seen_subcommand_from check lint ca help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from check" -s c -l config -d 'Read the configuration of this folder: e2guardian.conf, dansguardian.conf or squidGuard.conf; or the one that `[web]` in this configuration of Sluice names' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from check" -l group -d 'Check by this filter group' -r
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from check" -l user -d 'Check by the group of this user' -r
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from check" -l client -d 'Check by the group of a client with this address' -r
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from check" -l url -d 'The URL that the pages come from: lists of sites and URLs count, too. `HOST:PORT` is a tunnel' -r -f
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from check" -l type -d 'The type that the server says; without it, pages are text' -r
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from check" -l dialect -d 'Read lists as this program does. The default is that of `[web]`, if a configuration of Sluice is named, else e2guardian-5.3.5' -r -f -a "sluice\t''
e2guardian-5.3.5\t''
e2guardian-5.5.8\t''"
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from check" -l json -d 'Print a JSON object a line'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from lint" -s c -l config -d 'The same, as other commands name it; or the one that `[web]` in this configuration of Sluice names' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from lint" -l dialect -d 'Read lists as this program does. The default is that of `[web]`, if a configuration of Sluice is named, else sluice' -r -f -a "sluice\t''
e2guardian-5.3.5\t''
e2guardian-5.5.8\t''"
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from lint" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from lint" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca" -f -a "create" -d 'Make an authority: its certificate and its key, in one file that nobody else may read'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca" -f -a "export" -d 'Print the certificate of an authority, without its key, for clients that are to trust it'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check pages: their score by the phrases of a group, and what the group would do with them'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from help" -f -a "lint" -d 'Read a configuration, count what it holds, and name the lines that are not understood or can never match'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from help" -f -a "ca" -d 'The authority by which doors with `https = "inspect"` show certificates of their own'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and not __fish_seen_subcommand_from check sniff lint explain help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and not __fish_seen_subcommand_from check sniff lint explain help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and not __fish_seen_subcommand_from check sniff lint explain help" -f -a "check" -d 'Try rules on a capture, and print a line of EVE JSON an alert'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and not __fish_seen_subcommand_from check sniff lint explain help" -f -a "sniff" -d 'Try rules on the packets of a network interface, and print a line of EVE JSON an alert, until SIGTERM or SIGINT'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and not __fish_seen_subcommand_from check sniff lint explain help" -f -a "lint" -d 'Read rules, count them, and name those that do not load'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and not __fish_seen_subcommand_from check sniff lint explain help" -f -a "explain" -d 'Explain a rule: file and line, changes, tests, the text that selects it, thresholds, and its effect at the doors'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and not __fish_seen_subcommand_from check sniff lint explain help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -l pcap -d 'The capture: pcap or pcapng' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -l rules -d 'Files of rules of Suricata 5 to 8, or of Snort 2.9 or 3' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -s c -l config -d 'The rules of this configuration (`[ids]`)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -l var -d 'Set a variable of rules, without `$`' -r
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -l classes -d 'Read classes of rules from this file (classification.config)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -l thresholds -d 'Read thresholds and suppressions from this file (threshold.config)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -l disable -d 'Leave out the rules that this file of suricata-update names (disable.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -l enable -d 'Load commented-out rules that this file names (enable.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -l drop -d 'Have the rules that this file names drop (drop.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -l modify -d 'Replace in rules what this file says (modify.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -l records -d 'Print messages, files and flows as well: records of http, smtp, tls, fileinfo, flow and anomaly'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l rules -d 'Files or folders of rules, in place of those of the configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -s c -l config -d 'The configuration. [default: /etc/sluice/sluice.toml]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l user -d 'The user to become, if started as root' -r -f -a "(__fish_complete_users)"
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l memory -d 'MiB of memory for flows; beyond it those that hold most are ended' -r
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l var -d 'Set a variable of rules, without `$`' -r
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l classes -d 'Read classes of rules from this file (classification.config)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l thresholds -d 'Read thresholds and suppressions from this file (threshold.config)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l disable -d 'Leave out the rules that this file of suricata-update names (disable.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l enable -d 'Load commented-out rules that this file names (enable.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l drop -d 'Have the rules that this file names drop (drop.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l modify -d 'Replace in rules what this file says (modify.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l records -d 'Print messages, files and flows as well, and each minute counts of packets (stats)'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -l promiscuous -d 'Take packets for other machines, too'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from sniff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from lint" -s c -l config -d 'The rules of this configuration (`[ids]`)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from lint" -l var -d 'Set a variable of rules, without `$`' -r
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from lint" -l classes -d 'Read classes of rules from this file (classification.config)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from lint" -l thresholds -d 'Read thresholds and suppressions from this file (threshold.config)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from lint" -l disable -d 'Leave out the rules that this file of suricata-update names (disable.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from lint" -l enable -d 'Load commented-out rules that this file names (enable.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from lint" -l drop -d 'Have the rules that this file names drop (drop.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from lint" -l modify -d 'Replace in rules what this file says (modify.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from lint" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from lint" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from explain" -l rules -d 'Files or folders of rules, in place of those of the configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from explain" -s c -l config -d 'The configuration. [default: /etc/sluice/sluice.toml]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from explain" -l var -d 'Set a variable of rules, without `$`' -r
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from explain" -l classes -d 'Read classes of rules from this file (classification.config)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from explain" -l thresholds -d 'Read thresholds and suppressions from this file (threshold.config)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from explain" -l disable -d 'Leave out the rules that this file of suricata-update names (disable.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from explain" -l enable -d 'Load commented-out rules that this file names (enable.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from explain" -l drop -d 'Have the rules that this file names drop (drop.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from explain" -l modify -d 'Replace in rules what this file says (modify.conf)' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from help" -f -a "check" -d 'Try rules on a capture, and print a line of EVE JSON an alert'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from help" -f -a "sniff" -d 'Try rules on the packets of a network interface, and print a line of EVE JSON an alert, until SIGTERM or SIGINT'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from help" -f -a "lint" -d 'Read rules, count them, and name those that do not load'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from help" -f -a "explain" -d 'Explain a rule: file and line, changes, tests, the text that selects it, thresholds, and its effect at the doors'
complete -c sluice -n "__fish_sluice_using_subcommand ids; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and not __fish_seen_subcommand_from serve openapi person token help" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and not __fish_seen_subcommand_from serve openapi person token help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and not __fish_seen_subcommand_from serve openapi person token help" -f -a "serve" -d 'Serve the page, in the foreground. Prints a link that logs in one browser, once, within an hour'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and not __fish_seen_subcommand_from serve openapi person token help" -f -a "openapi" -d 'Print the description of the HTTP interface: OpenAPI 3.1, JSON'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and not __fish_seen_subcommand_from serve openapi person token help" -f -a "person" -d 'People who log in with a password, and their roles'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and not __fish_seen_subcommand_from serve openapi person token help" -f -a "token" -d 'Tokens of programs, and their roles'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and not __fish_seen_subcommand_from serve openapi person token help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from serve" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from serve" -l listen -d 'Where browsers come in. Over another network than the loopback put a proxy with TLS in front. [default: the address in `[admin]`, which is 127.0.0.1:2082]' -r
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from serve" -l metrics -d 'The address of the metrics; default: that of the configuration' -r
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from serve" -l token-file -d 'Programs log in with what this file holds: `Authorization: Bearer ...`, at least 32 characters' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from serve" -l read-only -d 'Nothing can be changed'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from serve" -l built-in -d 'The page of `sluice serve` without a configuration, which starts it'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from openapi" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from openapi" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person" -f -a "add" -d 'Add a person. The password is read from the standard input; on a terminal one is made and printed'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person" -f -a "passwd" -d 'Change a password, which is read as for `add`'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person" -f -a "reset" -d 'Remove the second step and the passkeys of a person who has lost them'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person" -f -a "remove" -d 'Remove a person and end the sessions at once'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person" -f -a "list" -d 'List all people with their roles'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token" -f -a "add" -d 'Make a token and print it; only its digest is kept'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token" -f -a "remove" -d 'Remove a token, which is good for nothing at once'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token" -f -a "list" -d 'List all tokens with their roles, and when they were made'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Serve the page, in the foreground. Prints a link that logs in one browser, once, within an hour'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from help" -f -a "openapi" -d 'Print the description of the HTTP interface: OpenAPI 3.1, JSON'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from help" -f -a "person" -d 'People who log in with a password, and their roles'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from help" -f -a "token" -d 'Tokens of programs, and their roles'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -s c -l config -d 'The configuration that names the ledger: `ledger` in `[spam.bayes]`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -l ledger -d 'Use the ledger in this folder, and read no configuration' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -l user -d 'The knowledge of this user; default: of the site' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -l rules -d 'Read the settings of this folder of rules, repeatable; later folders override earlier ones. Without it: as sluice spam check' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -f -a "ham" -d 'Learn mails as ham: mail that is wanted'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -f -a "spam" -d 'Learn mails as spam'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -f -a "forget" -d 'Undo the learning of mails'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -f -a "import" -d 'Put what `sa-learn --backup` or export has written in the place of all that is kept'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -f -a "export" -d 'Print all that is kept as `sa-learn --backup` does: `sa-learn --restore` and import read it'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -f -a "stat" -d 'Print how many mails were learned, how many words are kept, and how old they are'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -f -a "expire" -d 'Forget old tokens beyond `bayes_expiry_max_db_size`, and old mails'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and not __fish_seen_subcommand_from ham spam forget import export stat expire help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from ham" -l size-max -d 'Leave out mails of more bytes; 0: 64 MiB' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from ham" -s c -l config -d 'The configuration that names the ledger: `ledger` in `[spam.bayes]`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from ham" -l ledger -d 'Use the ledger in this folder, and read no configuration' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from ham" -l user -d 'The knowledge of this user; default: of the site' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from ham" -l rules -d 'Read the settings of this folder of rules, repeatable; later folders override earlier ones. Without it: as sluice spam check' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from ham" -l mbox -d 'Each FILE is a mailbox of many mails (mbox)'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from ham" -l dir -d 'Each FILE is a folder; anything else is an error'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from ham" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from ham" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from spam" -l size-max -d 'Leave out mails of more bytes; 0: 64 MiB' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from spam" -s c -l config -d 'The configuration that names the ledger: `ledger` in `[spam.bayes]`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from spam" -l ledger -d 'Use the ledger in this folder, and read no configuration' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from spam" -l user -d 'The knowledge of this user; default: of the site' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from spam" -l rules -d 'Read the settings of this folder of rules, repeatable; later folders override earlier ones. Without it: as sluice spam check' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from spam" -l mbox -d 'Each FILE is a mailbox of many mails (mbox)'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from spam" -l dir -d 'Each FILE is a folder; anything else is an error'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from spam" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from spam" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from forget" -l size-max -d 'Leave out mails of more bytes; 0: 64 MiB' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from forget" -s c -l config -d 'The configuration that names the ledger: `ledger` in `[spam.bayes]`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from forget" -l ledger -d 'Use the ledger in this folder, and read no configuration' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from forget" -l user -d 'The knowledge of this user; default: of the site' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from forget" -l rules -d 'Read the settings of this folder of rules, repeatable; later folders override earlier ones. Without it: as sluice spam check' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from forget" -l mbox -d 'Each FILE is a mailbox of many mails (mbox)'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from forget" -l dir -d 'Each FILE is a folder; anything else is an error'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from forget" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from forget" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from import" -s c -l config -d 'The configuration that names the ledger: `ledger` in `[spam.bayes]`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from import" -l ledger -d 'Use the ledger in this folder, and read no configuration' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from import" -l user -d 'The knowledge of this user; default: of the site' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from import" -l rules -d 'Read the settings of this folder of rules, repeatable; later folders override earlier ones. Without it: as sluice spam check' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from import" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from export" -s c -l config -d 'The configuration that names the ledger: `ledger` in `[spam.bayes]`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from export" -l ledger -d 'Use the ledger in this folder, and read no configuration' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from export" -l user -d 'The knowledge of this user; default: of the site' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from export" -l rules -d 'Read the settings of this folder of rules, repeatable; later folders override earlier ones. Without it: as sluice spam check' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from export" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from stat" -s c -l config -d 'The configuration that names the ledger: `ledger` in `[spam.bayes]`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from stat" -l ledger -d 'Use the ledger in this folder, and read no configuration' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from stat" -l user -d 'The knowledge of this user; default: of the site' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from stat" -l rules -d 'Read the settings of this folder of rules, repeatable; later folders override earlier ones. Without it: as sluice spam check' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from stat" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from stat" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from expire" -s c -l config -d 'The configuration that names the ledger: `ledger` in `[spam.bayes]`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from expire" -l ledger -d 'Use the ledger in this folder, and read no configuration' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from expire" -l user -d 'The knowledge of this user; default: of the site' -r
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from expire" -l rules -d 'Read the settings of this folder of rules, repeatable; later folders override earlier ones. Without it: as sluice spam check' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from expire" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from expire" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from help" -f -a "ham" -d 'Learn mails as ham: mail that is wanted'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from help" -f -a "spam" -d 'Learn mails as spam'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from help" -f -a "forget" -d 'Undo the learning of mails'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from help" -f -a "import" -d 'Put what `sa-learn --backup` or export has written in the place of all that is kept'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from help" -f -a "export" -d 'Print all that is kept as `sa-learn --backup` does: `sa-learn --restore` and import read it'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from help" -f -a "stat" -d 'Print how many mails were learned, how many words are kept, and how old they are'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from help" -f -a "expire" -d 'Forget old tokens beyond `bayes_expiry_max_db_size`, and old mails'
complete -c sluice -n "__fish_sluice_using_subcommand learn; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand man" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand man" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand completions" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand completions" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "serve" -d 'Run the gateway, in the foreground'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "reload" -d 'Have a running gateway reload its configuration and signatures, and wait for the outcome'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "scan" -d 'Scan files and folders for viruses'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "mount" -d 'Mount a folder so that nothing infected is read from it or written to it'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "watch" -d 'Watch folders so that nothing infected is opened or run'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "explain" -d 'Show how the engine parses a file: the tree of objects, their types, sizes and findings, and the time spent'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "check" -d 'Check a configuration and the signatures that it loads'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "config" -d 'Show a configuration'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "intercept" -d 'Manage the nftables rules that redirect connections to transparent listeners'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "quarantine" -d 'List, show, release or delete quarantined messages'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "dkim" -d 'Make, list and rotate the DKIM keys that sign outgoing mail'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "dmarc" -d 'Read reports that other sites send about the mail of a domain'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "domain" -d 'Print and check the records that the DNS has to have for a domain whose mail is here'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "migrate" -d 'Translate the configuration of another program'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "sendmail" -d 'Take a mail from standard input, as cron, PHP, mutt and git hand it to sendmail'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "queue" -d 'List, retry, hold, release, delete or bounce queued mail'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "cluster" -d 'Show the machines that share a store, and move the store between them'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "log" -d 'Search the message log'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "database" -d 'Inspect, compile, search, test and verify signature files'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "update" -d 'Download new signatures as configured in `[update]`'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "top" -d 'Show live statistics of a running gateway: sessions, messages by action, throughput, latency, memory'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "recipients" -d 'Look up recipients, and show which table answers'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "lookup" -d 'Print what a table of `[[lookup]]` has for addresses or names: its rows, a line each'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "dnsbl" -d 'Serve DNS block lists (DNSBL) from rbldnsd zone files, or query the files'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "rules" -d 'Check SpamAssassin\'s rules: count those loaded, and print the errors'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "auth" -d 'Authenticate a mail: SPF, DKIM, DMARC and ARC'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "store" -d 'Manage a mail store: create, inspect and check it, import and export mail'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "account" -d 'Manage the accounts of a mail server: add, change and remove them'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "sieve" -d 'Manage users\' Sieve filters: check them, test them on a mail, and store them'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "mail" -d 'Find a mail in all mailboxes of a store, and remove it'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "who" -d 'Print the mailboxes of a store that have a mail, by its Message-ID: account, mailbox and UID, a line each'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "recall" -d 'Remove a mail from all mailboxes of a store, in one transaction, by its Message-ID'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "spam" -d 'Check mails with SpamAssassin\'s rules'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "web" -d 'Check pages with the lists of E2Guardian or DansGuardian, and check those lists'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "ids" -d 'Check intrusion rules of Suricata and Snort: count them, explain them, test them on captures'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "admin" -d 'Serve the administrator\'s page in a browser, and manage its people and tokens'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "learn" -d 'Train the spam filter with mails, and manage what it has learned'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "man" -d 'Print the man page, or write the man pages of all commands to a folder'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "completions" -d 'Print shell completions'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve reload scan mount watch explain check config intercept quarantine dkim dmarc domain migrate sendmail queue cluster log database update top recipients lookup dnsbl rules auth store account sieve mail who recall spam web ids admin learn man completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "show" -d 'Print the keys that are set, with their values, files and lines, included files too. Without --all defaults are not printed'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from intercept" -f -a "print" -d 'Print the rules for `nft -f`; the `ip` commands are in comments'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from intercept" -f -a "install" -d 'Install the rules, replacing those installed before'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from intercept" -f -a "remove" -d 'Remove the rules: connections reach their servers directly again'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from quarantine" -f -a "list" -d 'List messages: id, date, state, size, sender, recipients, first finding'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from quarantine" -f -a "show" -d 'Show a message: its metadata and its header'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from quarantine" -f -a "release" -d 'Deliver messages to recipients that have not received them yet, with the original envelope and without another inspection. They stay in the quarantine, marked as released, until they are deleted or expire'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from quarantine" -f -a "train" -d 'Train a spam filter with messages, as configured in `[quarantine.train]`'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from quarantine" -f -a "delete" -d 'Delete messages'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dkim" -f -a "create" -d 'Make the first keys of a domain, RSA and Ed25519, and print the records that name them. They sign at once'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dkim" -f -a "rotate" -d 'Make further keys of a domain, which sign in a day: publish their records before'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dkim" -f -a "list" -d 'Print the records of all keys, and which sign'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dkim" -f -a "remove" -d 'Forget a key'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dmarc" -f -a "report" -d 'Print the aggregate reports of files: XML, compressed or in an archive, or whole mails'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from domain" -f -a "add" -d 'Make the keys of a domain that has none, and print the records that the DNS has to have, as lines of a zone'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from domain" -f -a "check" -d 'Look up the records of a domain, and say which are missing or other than they have to be'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from migrate" -f -a "postfix" -d 'Read Postfix\'s main.cf, master.cf and tables, and print a sluice.toml, in which each line says where it comes from; what is not translated stands at its end, with file, line and reason'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "list" -d 'Print the queue, a line for each mail and recipient: number, sender, recipient, age, attempts, next attempt, and the last error'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "show" -d 'Print all facts about mails, a JSON object each'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "why" -d 'Print why mails wait: the last reply, the next attempt, and the rest of their host'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "retry" -d 'Retry mails now, even if their host rests'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "flush" -d 'Retry all queued mails now'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "hold" -d 'Hold mails until they are released'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "release" -d 'Release held mails'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "delete" -d 'Delete mails, without a notification'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "bounce" -d 'Bounce mails now: their senders are notified'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from queue" -f -a "suppress" -d 'Print or change the list of recipients that get no more mail of accounts'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "status" -d 'Print the nodes, which of them has the store, and how far the others follow'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "check" -d 'Say whether this machine can be a node: database, standbys, secret, other nodes. Exit status: 0 it can, 1 something is wrong'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "drain" -d 'Make a node give up the store before it is upgraded or shut down: another node takes it without waiting for the lease'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "move" -d 'Have a node own the store'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "documents" -d 'Print the files that all nodes have alike: version, size, last change, and whether this machine has it. Exit status: 1 if a node is behind'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "share" -d 'Make documents of this machine\'s files where there are none yet: accounts, DKIM keys, certificates by ACME, and those of [cluster] documents. Its server must run'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "import" -d 'Copy the store of one machine to the database of a cluster without a store. No server may have it open'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from cluster" -f -a "export" -d 'Write the store of the cluster to a file that one machine can serve, as of the last flush: a backup, or the way back'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "info" -d 'Load signatures and print statistics: how many are loaded, how exactly they match, and which are not loaded and why'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "compile" -d 'Compile signatures to one file, which `scan` with the same paths or `serve` with the same configuration maps'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "worker" -d 'The sandboxed process of `compile`'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "find" -d 'Print the signatures whose name contains this text. Exit status 1: none'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "test" -d 'Test one signature, or one database file, against a file and everything in it. Exit status as for `scan`'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "verify" -d 'Verify each file\'s signature and print the signer. Exit status 2: at least one is invalid'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from recipients" -f -a "check" -d 'Look up addresses as a listener would at RCPT: print its reply, and the table and line that decide'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dnsbl" -f -a "serve" -d 'Run the DNS server, in the foreground'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dnsbl" -f -a "check" -d 'Check zone files and print statistics and errors. Exit status: 0 no errors, 1 bad lines, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dnsbl" -f -a "why" -d 'Show why an address or name is listed. Exit status: 0 listed, 1 not listed, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dnsbl" -f -a "reputation" -d 'Keep a local reputation database: record events of addresses, and generate zone files'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dnsbl" -f -a "publish" -d 'Publish a list as signed files for a web server: the newest version, and what changed since older ones'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dnsbl" -f -a "fetch" -d 'Fetch a published list, verify its signature, and replace the local file'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from rules" -f -a "lint" -d 'Read a configuration of SpamAssassin, count its rules, and print errors and rules that cannot hit'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from auth" -f -a "check" -d 'Check a mail as it came in, and print what Authentication-Results would say, a result a line'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from store" -f -a "create" -d 'Make an empty store: a file that is allocated whole, or all of a block device'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from store" -f -a "stat" -d 'Print how full a store is'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from store" -f -a "check" -d 'Read all of a store and print what is damaged. Exit status: 0 undamaged, 1 damaged, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from store" -f -a "deliver" -d 'Deliver mails to accounts, each stored once. A line is printed for each recipient when the mail is on stable storage'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from store" -f -a "import" -d 'Import a Maildir, with its subfolders, or an mbox'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from store" -f -a "export" -d 'Export mailboxes to Maildir folders or mbox files, also while a server has the store open: a backup'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from store" -f -a "ls" -d 'List accounts, an account\'s mailboxes, or a mailbox\'s messages'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from store" -f -a "cat" -d 'Print a message'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from store" -f -a "acl" -d 'Print or change the access list of a mailbox (RFC 4314): without WHO, print it, a line for each entry'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from store" -f -a "serve" -d 'Run a mail server on a store: LMTP in, POP3 and IMAP out. Ends at SIGTERM'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from account" -f -a "add" -d 'Add an account. Its password is read from the standard input; on a terminal one is made and printed'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from account" -f -a "passwd" -d 'Change a password, which is read as for `add`'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from account" -f -a "remove" -d 'Remove an account. Its mail stays in the store'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from account" -f -a "disable" -d 'Disable logins to an account. Its mail is still delivered, and open connections stay open'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from account" -f -a "enable" -d 'Enable logins to an account again'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from account" -f -a "reset" -d 'Remove the second step and the passkeys of an account\'s login, if they are lost. Needs a running server'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from account" -f -a "app-password" -d 'Make, list and withdraw passwords for programs, which log in with them but at the webmail. Needs a server that runs'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from account" -f -a "quota" -d 'Set the bytes of mail that an account may have; 0 is no bound'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from account" -f -a "alias" -d 'Set the aliases of an account, in place of the present ones; none removes all'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from account" -f -a "list" -d 'List all accounts, with quota and aliases'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from sieve" -f -a "check" -d 'Check scripts: what is wrong with one is printed with its line and column'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from sieve" -f -a "test" -d 'Run a script over a mail and print what it would do, an action a line; nothing of it is done'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from sieve" -f -a "list" -d 'List the scripts of an account in a mail store; the active one is marked'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from sieve" -f -a "put" -d 'Check a script and keep it in a mail store, in place of one of that name'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from sieve" -f -a "get" -d 'Print a script of an account'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from sieve" -f -a "activate" -d 'Make a script the one that runs when mail comes; without a name, none'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from sieve" -f -a "delete" -d 'Remove a script that is not active'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from mail" -f -a "who" -d 'Print the mailboxes of a store that have a mail, by its Message-ID: the same as `sluice who`'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from mail" -f -a "recall" -d 'Remove a mail from all mailboxes of a store, by its Message-ID: the same as `sluice recall`'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from spam" -f -a "check" -d 'Check mails: which rules hit, and the score that they add up to'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from web" -f -a "check" -d 'Check pages: their score by the phrases of a group, and what the group would do with them'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from web" -f -a "lint" -d 'Read a configuration, count what it holds, and name the lines that are not understood or can never match'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from web" -f -a "ca" -d 'The authority by which doors with `https = "inspect"` show certificates of their own'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from ids" -f -a "check" -d 'Try rules on a capture, and print a line of EVE JSON an alert'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from ids" -f -a "sniff" -d 'Try rules on the packets of a network interface, and print a line of EVE JSON an alert, until SIGTERM or SIGINT'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from ids" -f -a "lint" -d 'Read rules, count them, and name those that do not load'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from ids" -f -a "explain" -d 'Explain a rule: file and line, changes, tests, the text that selects it, thresholds, and its effect at the doors'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from admin" -f -a "serve" -d 'Serve the page, in the foreground. Prints a link that logs in one browser, once, within an hour'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from admin" -f -a "openapi" -d 'Print the description of the HTTP interface: OpenAPI 3.1, JSON'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from admin" -f -a "person" -d 'People who log in with a password, and their roles'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from admin" -f -a "token" -d 'Tokens of programs, and their roles'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from learn" -f -a "ham" -d 'Learn mails as ham: mail that is wanted'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from learn" -f -a "spam" -d 'Learn mails as spam'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from learn" -f -a "forget" -d 'Undo the learning of mails'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from learn" -f -a "import" -d 'Put what `sa-learn --backup` or export has written in the place of all that is kept'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from learn" -f -a "export" -d 'Print all that is kept as `sa-learn --backup` does: `sa-learn --restore` and import read it'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from learn" -f -a "stat" -d 'Print how many mails were learned, how many words are kept, and how old they are'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from learn" -f -a "expire" -d 'Forget old tokens beyond `bayes_expiry_max_db_size`, and old mails'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from list" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from list" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from add" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from add" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from add" -l reason -d 'Why, for the list' -r
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from add" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from delete" -l store -d 'The store. [default: that of [store] in the configuration, or /var/lib/sluice/store/mail without a configuration]' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from delete" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from delete" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand queue; and __fish_seen_subcommand_from suppress; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation; and __fish_seen_subcommand_from note" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation; and __fish_seen_subcommand_from note" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation; and __fish_seen_subcommand_from standing" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation; and __fish_seen_subcommand_from standing" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation; and __fish_seen_subcommand_from forgive" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation; and __fish_seen_subcommand_from forgive" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation; and __fish_seen_subcommand_from forget" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation; and __fish_seen_subcommand_from forget" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password; and __fish_seen_subcommand_from add" -l protocol -d 'A protocol that it is for, repeatable: imap, pop3, submission, managesieve, jmap. [default: all]' -r -f -a 'imap pop3 submission managesieve jmap'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password; and __fish_seen_subcommand_from add" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password; and __fish_seen_subcommand_from list" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password; and __fish_seen_subcommand_from delete" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand account; and __fish_seen_subcommand_from app-password; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca; and __fish_seen_subcommand_from create" -l name -d 'The name of the authority, shown in the details of certificates' -r
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca; and __fish_seen_subcommand_from create" -l days -d 'Validity in days' -r
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca; and __fish_seen_subcommand_from create" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca; and __fish_seen_subcommand_from export" -l der -d 'Print DER in place of PEM'
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca; and __fish_seen_subcommand_from export" -s c -l config -d 'The configuration, for commands that read one' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand web; and __fish_seen_subcommand_from ca; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from add" -l role -d 'Rights of the person' -r -f -a 'administrator helpdesk reader'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from add" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from passwd" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from passwd" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from reset" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from reset" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from remove" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from list" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from person; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token; and __fish_seen_subcommand_from add" -l role -d 'Rights of a program that uses the token' -r -f -a 'administrator helpdesk reader'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token; and __fish_seen_subcommand_from add" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token; and __fish_seen_subcommand_from remove" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token; and __fish_seen_subcommand_from list" -s c -l config -d 'The configuration of the gateway' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand admin; and __fish_seen_subcommand_from token; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
