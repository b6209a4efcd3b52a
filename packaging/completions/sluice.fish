# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_sluice_global_optspecs
    string join \n h/help V/version
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

complete -c sluice -n "__fish_sluice_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_needs_command" -s V -l version -d 'Print version'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "serve" -d 'Run the gateway, in the foreground'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "scan" -d 'Look for signatures in files and folders'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "explain" -d 'Show what the engine sees in a file: the tree of objects, their types, sizes and findings, and the time spent'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "check" -d 'Check a configuration and the signatures that it names'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "intercept" -d 'Write the rules that send other servers\' connections to transparent listeners'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "quarantine" -d 'Look at what was put into quarantine, send it on, or delete it'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "log" -d 'Search the decisions in a log'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "database" -d 'Look at signature files: what they hold and how it is understood'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "update" -d 'Fetch new signatures, as `[update]` in the configuration says'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "top" -d 'Show what a running gateway does: sessions, messages and what became of them, throughput, times, memory'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "dnsbl" -d 'Serve block lists over DNS from rbldnsd\'s zone files, or look into them'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "man" -d 'Print the man page, or write one for each command into a folder'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "completions" -d 'Print the completions for a shell'
complete -c sluice -n "__fish_sluice_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand serve" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l clamd-conf -d 'Take clamd\'s place: addresses, databases and limits from this `clamd.conf`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand serve" -s d -l database -d 'Load this signature file, or all in this folder, besides the built-in test signatures; repeatable' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l cache -d 'Keep compiled signatures in this folder; `none`: compile them at every start. Without it a service uses the folder that its manager gives it, and other commands ~/.cache/sluice for sets of more than 4 MiB' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l certificates -d 'Refuse containers that have a signature beside them (`.cvd.sign`) which is not their own, or by nobody whom these certificates vouch for; a file, or a folder of them' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l detect-pua -d 'Load signatures of potentially unwanted applications (PUA), too' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l include-pua -d 'Of these, only those of this category, the second word of their names; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l exclude-pua -d 'Of these, none of this category; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand serve" -l allow-root -d 'Stay root when started as root. Without it, and without `user` in the configuration, that is refused'
complete -c sluice -n "__fish_sluice_using_subcommand serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s d -l database -d 'Load this signature file, or all in this folder, besides the built-in test signatures; repeatable' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l cache -d 'Keep compiled signatures in this folder; `none`: compile them at every start. Without it a service uses the folder that its manager gives it, and other commands ~/.cache/sluice for sets of more than 4 MiB' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l certificates -d 'Refuse containers that have a signature beside them (`.cvd.sign`) which is not their own, or by nobody whom these certificates vouch for; a file, or a folder of them' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l detect-pua -d 'Load signatures of potentially unwanted applications (PUA), too' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l include-pua -d 'Of these, only those of this category, the second word of their names; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l exclude-pua -d 'Of these, none of this category; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s r -l recursive -d 'Enter folders within folders; `--recursive=no` keeps to the files right in the folders named' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s f -l file-list -d 'Look at the files that this file lists, too, one a line' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l exclude -d 'Pass over files whose path matches; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l exclude-dir -d 'Pass over folders whose path matches; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l include -d 'Look only at files whose path matches; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l include-dir -d 'Look only into folders whose path matches; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-dir-recursion -d 'Folders within each other, at most, those named here among them' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l cross-fs -d 'Enter folders on other file systems' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l follow-dir-symlinks -d 'Follow links to folders: 0 never, 1 those named here, 2 always' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l follow-file-symlinks -d 'Follow links to files: 0 never, 1 those named here, 2 always' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l alert-exceeds-max -d 'Count limits as found' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l alert-encrypted -l alert-encrypted-archive -l alert-encrypted-doc -d 'Count encryption as found' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s z -l allmatch -d 'Name every signature that matches in a file, not just the first' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-filesize -d 'Do not look at larger files: a limit. K, M and G may follow the number; 0 means any size' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-scansize -d 'Look at no more of a file than this: a limit. 0 means all of it' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-scantime -d 'Look at a file no longer than this: a limit. 0 means 120 seconds of processor time, and more for long files' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-recursion -d 'Containers within containers; 0 means as many as without this option' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l max-files -d 'Objects in one file; 0 means 1,048,576' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l move -d 'Move infected files into this folder' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l copy -d 'Copy infected files into this folder' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l remove -d 'Remove infected files' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s l -l log -d 'Append what is printed to this file' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l fail-if-cvd-older-than -d 'Look at nothing if the newest of ClamAV\'s containers is older, or there is none: exit status 2' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s j -l jobs -d 'Files looked at side by side; 0 means one for each core' -r
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l strict -d 'Count limits, ambiguities and encryption as found, too'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s i -l infected -d 'Print only what something was found in'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s o -l suppress-ok-results -d 'Print no files that are OK'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l quiet -d 'Print errors only'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s a -l archive-verbose -d 'Print where in a file something was found: `mail.eml » invoice.zip » a.exe`'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l json -d 'Print one JSON object a file, and no summary'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l no-summary -d 'Print no summary'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l stdout -d 'Print errors on the standard output, too'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -l bell -d 'Ring the bell when something is found'
complete -c sluice -n "__fish_sluice_using_subcommand scan" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand explain" -s d -l database -d 'Load this signature file, or all in this folder, besides the built-in test signatures; repeatable' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l cache -d 'Keep compiled signatures in this folder; `none`: compile them at every start. Without it a service uses the folder that its manager gives it, and other commands ~/.cache/sluice for sets of more than 4 MiB' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l certificates -d 'Refuse containers that have a signature beside them (`.cvd.sign`) which is not their own, or by nobody whom these certificates vouch for; a file, or a folder of them' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l detect-pua -d 'Load signatures of potentially unwanted applications (PUA), too' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l include-pua -d 'Of these, only those of this category, the second word of their names; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l exclude-pua -d 'Of these, none of this category; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand explain" -l json -d 'Print one JSON object a line, for each object'
complete -c sluice -n "__fish_sluice_using_subcommand explain" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand check" -l from -d 'Say what holds for a mail from this sender; an empty one is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand check" -l to -d 'Say what holds for a mail to this recipient' -r
complete -c sluice -n "__fish_sluice_using_subcommand check" -l client -d 'Say what holds for a mail from this client' -r
complete -c sluice -n "__fish_sluice_using_subcommand check" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -f -a "print" -d 'Print them, as `nft -f` takes them; what `ip` is told besides stands in comments'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -f -a "install" -d 'Put them in force, in place of those that are'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -f -a "remove" -d 'Remove them: connections go straight to their servers again'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and not __fish_seen_subcommand_from print install remove help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from print" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from print" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from install" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from install" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from remove" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from help" -f -a "print" -d 'Print them, as `nft -f` takes them; what `ip` is told besides stands in comments'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from help" -f -a "install" -d 'Put them in force, in place of those that are'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Remove them: connections go straight to their servers again'
complete -c sluice -n "__fish_sluice_using_subcommand intercept; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -s c -l config -d 'The configuration whose listeners\' quarantines are meant' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -l folder -d 'This quarantine, and no configuration' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "list" -d 'Print a line for each message: id, date, state, bytes, sender, recipients, the first finding'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "show" -d 'Print what is known of a message, and the header of the mail'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "release" -d 'Send messages on to those of their recipients that do not have them, with the original envelope and without another inspection. They stay in the quarantine, marked, until they are deleted or expire'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "train" -d 'Have a program learn from messages, as the configuration says: `[quarantine.train]`'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "delete" -d 'Delete messages'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and not __fish_seen_subcommand_from list show release train delete help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l older -d 'Messages that are at least this old: 90s, 15m, 12h, 7d, 4w' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l newer -d 'Messages that are younger than this' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l from -d 'Messages whose sender holds this text; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l to -d 'Messages with a recipient that holds this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l found -d 'Messages with a finding that holds this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l state -d 'Messages in this state' -r -f -a "held\t'Nobody has it'
partly\t'Some of its recipients have it'
released\t'All of its recipients have it'"
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -l json -d 'Print one JSON object a message'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from show" -l json -d 'Print what is known as a JSON object'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from show" -l raw -d 'Print the mail itself, as it came'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l older -d 'Messages that are at least this old: 90s, 15m, 12h, 7d, 4w' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l newer -d 'Messages that are younger than this' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l from -d 'Messages whose sender holds this text; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l to -d 'Messages with a recipient that holds this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l found -d 'Messages with a finding that holds this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l state -d 'Messages in this state' -r -f -a "held\t'Nobody has it'
partly\t'Some of its recipients have it'
released\t'All of its recipients have it'"
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l hop -d 'Send them there, and not to the next hop that they were meant for: smtp://HOST:PORT, lmtp:/PATH and so on' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -l again -d 'Send them to those recipients too that have them'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from release" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l older -d 'Messages that are at least this old: 90s, 15m, 12h, 7d, 4w' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l newer -d 'Messages that are younger than this' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l from -d 'Messages whose sender holds this text; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l to -d 'Messages with a recipient that holds this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l found -d 'Messages with a finding that holds this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l state -d 'Messages in this state' -r -f -a "held\t'Nobody has it'
partly\t'Some of its recipients have it'
released\t'All of its recipients have it'"
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -l json -d 'Print one JSON object a message'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from train" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l older -d 'Messages that are at least this old: 90s, 15m, 12h, 7d, 4w' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l newer -d 'Messages that are younger than this' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l from -d 'Messages whose sender holds this text; <> is the null sender' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l to -d 'Messages with a recipient that holds this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l found -d 'Messages with a finding that holds this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -l state -d 'Messages in this state' -r -f -a "held\t'Nobody has it'
partly\t'Some of its recipients have it'
released\t'All of its recipients have it'"
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from delete" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "list" -d 'Print a line for each message: id, date, state, bytes, sender, recipients, the first finding'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print what is known of a message, and the header of the mail'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "release" -d 'Send messages on to those of their recipients that do not have them, with the original envelope and without another inspection. They stay in the quarantine, marked, until they are deleted or expire'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "train" -d 'Have a program learn from messages, as the configuration says: `[quarantine.train]`'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "delete" -d 'Delete messages'
complete -c sluice -n "__fish_sluice_using_subcommand quarantine; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand log" -l id -d 'The message with this id' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l address -d 'Sender, recipients or client hold this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l from -d 'The sender holds this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l to -d 'The recipients hold this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l action -d 'This was done: pass, tag, blank, quarantine or reject' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l found -d 'What was found holds this text' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l since -d 'Not before this time, as the log writes it or the beginning of that: 2026-11-21 or 2026-11-21T20:15 (UTC)' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l until -d 'Before this time' -r
complete -c sluice -n "__fish_sluice_using_subcommand log" -l json -d 'Print the lines as they stand'
complete -c sluice -n "__fish_sluice_using_subcommand log" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "info" -d 'Load files and folders, and print the census: how many signatures are looked for and how exactly, and which are not and why'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "compile" -d 'Compile files and folders to one file that `scan` with the same paths, or `serve` with the same configuration, maps'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "worker" -d 'Compile what comes in: the other end of `compile`'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "find" -d 'Print the lines of the signatures whose name has this text in it. Exit status 1: there is none'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "test" -d 'Look for one signature, or for those of one file, in a file and in all that it holds. Exit status as of `scan`'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "verify" -d 'Read each file by itself, check what it is signed with, and say whose word it is. Exit status 2: one is not right'
complete -c sluice -n "__fish_sluice_using_subcommand database; and not __fish_seen_subcommand_from info compile worker find test verify help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from info" -l refused -d 'Name each signature that is not looked for'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from info" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from info" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -s c -l config -d 'Those that this configuration names' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l cache -d 'The folder of compiled signatures' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l certificates -d 'Certificates that containers with a signature beside them have to be signed by' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l detect-pua -d 'Load signatures of potentially unwanted applications (PUA), too' -r -f -a "true\t''
false\t''"
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l include-pua -d 'Of these, only those of this category, the second word of their names; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l exclude-pua -d 'Of these, none of this category; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from compile" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from worker" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from worker" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from find" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from find" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from test" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from test" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from verify" -l certificates -d 'Certificates that containers with a signature beside them have to be signed by' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from verify" -l json -d 'Print JSON'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from verify" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "info" -d 'Load files and folders, and print the census: how many signatures are looked for and how exactly, and which are not and why'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "compile" -d 'Compile files and folders to one file that `scan` with the same paths, or `serve` with the same configuration, maps'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "worker" -d 'Compile what comes in: the other end of `compile`'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "find" -d 'Print the lines of the signatures whose name has this text in it. Exit status 1: there is none'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "test" -d 'Look for one signature, or for those of one file, in a file and in all that it holds. Exit status as of `scan`'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "verify" -d 'Read each file by itself, check what it is signed with, and say whose word it is. Exit status 2: one is not right'
complete -c sluice -n "__fish_sluice_using_subcommand database; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand update" -s c -l config -d 'The configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand update" -l freshclam-conf -d 'Take freshclam\'s place: folder, mirror and databases from this `freshclam.conf`' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand update" -l force -d 'Ask for files that failed lately, too'
complete -c sluice -n "__fish_sluice_using_subcommand update" -l rollback -d 'Fetch nothing: put back in force what was before'
complete -c sluice -n "__fish_sluice_using_subcommand update" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand top" -s c -l config -d 'The configuration that says where the numbers are' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand top" -l metrics -d 'Ask there, and read no configuration' -r
complete -c sluice -n "__fish_sluice_using_subcommand top" -l every -d 'Seconds from page to page' -r
complete -c sluice -n "__fish_sluice_using_subcommand top" -l count -d 'Pages; 0 means until it is ended' -r
complete -c sluice -n "__fish_sluice_using_subcommand top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation help" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation help" -f -a "serve" -d 'Answer queries for zones, in the foreground'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation help" -f -a "check" -d 'Read zones and say what they hold and what is wrong with them. Exit status: 0 nothing is, 1 some lines are, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation help" -f -a "why" -d 'Say what lists an address or name. Exit status: 0 it is listed, 1 it is not, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation help" -f -a "reputation" -d 'Keep a reputation of our own: note what was seen of an address, and make zone files of it'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and not __fish_seen_subcommand_from serve check why reputation help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -s c -l config -d 'Take what is not said here from [dnsbl] in this configuration' -r -F
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -s l -l listen -d 'Answer here, by UDP and TCP; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -s z -l zone -d 'A zone, as rbldnsd is told; repeatable. Types: ip4set, ip4trie, ip4tset, ip6trie, ip6tset, dnset, generic, combined, acl, and feed for plain lists' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l check -d 'Look at the files every so many seconds; 0: never, but for SIGHUP. Default 60' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l threads -d 'How many event loops answer; default one a core' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l metrics -d 'Show metrics here, by HTTP' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l transfer-to -d 'Give whole zones (AXFR) to these addresses; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l notify -d 'Tell this secondary that a zone has changed; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l user -d 'Become this user, where root has started it; default nobody' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l aaaa -d 'Answer AAAA of half a /24 with a bitmap'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l no-prefixes -d 'Answer addresses and names alone, no prefixes'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -l allow-root -d 'Stay root'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from serve" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from check" -s z -l zone -d 'A zone; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from why" -s z -l zone -d 'A zone; repeatable' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from why" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -l folder -d 'Where the ledger and the zone files `ip4` (ip4set) and `ip6` (ip6trie) are' -r -f -a "(__fish_complete_directories)"
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -l half-life -d 'After how many seconds a score is worth half; default a day' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -l threshold -d 'From which score on an address is listed; default 5' -r
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "note" -d 'Note an event: trust, harvest, spam or infected'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "standing" -d 'Say how an address stands, and why. Exit status: 0 it is listed, 1 it is not, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "why" -d 'Say how an address stands, and why. Exit status: 0 it is listed, 1 it is not, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "forgive" -d 'Forget all about an address. Exit status: 0 it is forgotten, 1 there was nothing, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "forget" -d 'Make the zone files anew, without what has decayed'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from reputation" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "serve" -d 'Answer queries for zones, in the foreground'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "check" -d 'Read zones and say what they hold and what is wrong with them. Exit status: 0 nothing is, 1 some lines are, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "why" -d 'Say what lists an address or name. Exit status: 0 it is listed, 1 it is not, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "reputation" -d 'Keep a reputation of our own: note what was seen of an address, and make zone files of it'
complete -c sluice -n "__fish_sluice_using_subcommand dnsbl; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand man" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand completions" -s h -l help -d 'Print help'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "serve" -d 'Run the gateway, in the foreground'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "scan" -d 'Look for signatures in files and folders'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "explain" -d 'Show what the engine sees in a file: the tree of objects, their types, sizes and findings, and the time spent'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "check" -d 'Check a configuration and the signatures that it names'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "intercept" -d 'Write the rules that send other servers\' connections to transparent listeners'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "quarantine" -d 'Look at what was put into quarantine, send it on, or delete it'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "log" -d 'Search the decisions in a log'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "database" -d 'Look at signature files: what they hold and how it is understood'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "update" -d 'Fetch new signatures, as `[update]` in the configuration says'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "top" -d 'Show what a running gateway does: sessions, messages and what became of them, throughput, times, memory'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "dnsbl" -d 'Serve block lists over DNS from rbldnsd\'s zone files, or look into them'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "man" -d 'Print the man page, or write one for each command into a folder'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "completions" -d 'Print the completions for a shell'
complete -c sluice -n "__fish_sluice_using_subcommand help; and not __fish_seen_subcommand_from serve scan explain check intercept quarantine log database update top dnsbl man completions help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from intercept" -f -a "print" -d 'Print them, as `nft -f` takes them; what `ip` is told besides stands in comments'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from intercept" -f -a "install" -d 'Put them in force, in place of those that are'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from intercept" -f -a "remove" -d 'Remove them: connections go straight to their servers again'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from quarantine" -f -a "list" -d 'Print a line for each message: id, date, state, bytes, sender, recipients, the first finding'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from quarantine" -f -a "show" -d 'Print what is known of a message, and the header of the mail'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from quarantine" -f -a "release" -d 'Send messages on to those of their recipients that do not have them, with the original envelope and without another inspection. They stay in the quarantine, marked, until they are deleted or expire'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from quarantine" -f -a "train" -d 'Have a program learn from messages, as the configuration says: `[quarantine.train]`'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from quarantine" -f -a "delete" -d 'Delete messages'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "info" -d 'Load files and folders, and print the census: how many signatures are looked for and how exactly, and which are not and why'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "compile" -d 'Compile files and folders to one file that `scan` with the same paths, or `serve` with the same configuration, maps'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "worker" -d 'Compile what comes in: the other end of `compile`'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "find" -d 'Print the lines of the signatures whose name has this text in it. Exit status 1: there is none'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "test" -d 'Look for one signature, or for those of one file, in a file and in all that it holds. Exit status as of `scan`'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from database" -f -a "verify" -d 'Read each file by itself, check what it is signed with, and say whose word it is. Exit status 2: one is not right'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dnsbl" -f -a "serve" -d 'Answer queries for zones, in the foreground'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dnsbl" -f -a "check" -d 'Read zones and say what they hold and what is wrong with them. Exit status: 0 nothing is, 1 some lines are, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dnsbl" -f -a "why" -d 'Say what lists an address or name. Exit status: 0 it is listed, 1 it is not, 2 an error'
complete -c sluice -n "__fish_sluice_using_subcommand help; and __fish_seen_subcommand_from dnsbl" -f -a "reputation" -d 'Keep a reputation of our own: note what was seen of an address, and make zone files of it'
