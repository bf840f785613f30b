# Replays the corpus of every fuzz target: inputs that once found something, and a few that reach far.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/lib";

use AbxServer;
use Test::More;

for my $dir (sort glob "$FindBin::Bin/fuzz/corpus/*/") {
	my ($name) = $dir =~ m{([^/]+)/\z};
	my $program = AbxServer::build_dir() . "/t/fuzz/fuzz_$name";
	my @inputs = grep { -f } glob "$dir*";

	ok -x $program, "$name: the target is built" or next;
	cmp_ok scalar @inputs, '>', 0, "$name: it has a corpus";
	open my $run, '-|', 'sh', '-c', 'exec "$0" "$@" 2>&1', $program, @inputs or die "$program: $!";
	my $said = do { local $/; <$run> };
	close $run;
	is $?, 0, "$name: " . @inputs . ' inputs' or diag $said;
}

done_testing;
