# What Mail::DKIM says of all `N.eml` of a folder, whose key is in `key.txt`: a line `N RESULT ARC` for each.
use strict;
use warnings;
use Mail::DKIM::ARC::Verifier;
use Mail::DKIM::Verifier;
use Net::DNS;

my ($folder) = @ARGV;
open my $file, '<', "$folder/key.txt" or die;
my $text = do { local $/; <$file> };
no warnings 'redefine';
*Mail::DKIM::DNS::query = sub {
    my @pieces = $text =~ /.{1,200}/gs;
    $@ = '';
    return Net::DNS::RR->new(name => $_[0], type => 'TXT', txtdata => \@pieces);
};

for my $path (sort glob "$folder/*.eml") {
    open my $mail, '<:raw', $path or die;
    my $data = do { local $/; <$mail> };
    my @results = map {
        my $verifier = $_;
        eval { $verifier->PRINT($data); $verifier->CLOSE; $verifier->result } || 'error'
    } Mail::DKIM::Verifier->new, Mail::DKIM::ARC::Verifier->new;
    my ($number) = $path =~ /(\d+)\.eml$/;
    print "$number @results\n";
}
