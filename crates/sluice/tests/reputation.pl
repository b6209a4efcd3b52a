# What SpamAssassin says of mails with the reputation of their senders, offline: one JSON object for each that is checked.
# Usage: reputation.pl RULES SITE; lines of the standard input are `check PATH`, `spam PATH`, `ham PATH`.
use strict;
use warnings;
use JSON::PP;
use Mail::SpamAssassin;

my ($rules, $site) = @ARGV;
my $json = JSON::PP->new->latin1->canonical;
my $reader = Mail::SpamAssassin->new({
    rules_filename => $rules, site_rules_filename => $site, userprefs_filename => '/dev/null', userstate_dir => '/nonexistent',
    dont_copy_prefs => 1, local_tests_only => 1, languages => 'C', home_dir_for_helpers => '/nonexistent',
});
$reader->init(1);
$| = 1;
while (my $line = <STDIN>) {
    chomp $line;
    my ($what, $path) = split / /, $line, 2;
    open(my $file, '<:raw', $path) or die "$path: $!";
    my $text = do { local $/; <$file> };
    my $mail = $reader->parse($text, 1);
    if ($what eq 'check') {
        my $status = $reader->check($mail);
        my $scores = $status->get_names_of_tests_hit_with_scores_hash();
        print $json->encode({ file => $path, score => $status->get_score(), txrep => 0 + ($scores->{TXREP} || 0) }), "\n";
        $status->finish();
    } else {
        my $status = $reader->learn($mail, undef, $what eq 'spam' ? 1 : 0, 0);
        $status->finish();
        print "{}\n";
    }
    $mail->finish();
}
