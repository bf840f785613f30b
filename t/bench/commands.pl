#!/usr/bin/perl
# What a named command costs: a native one beside /health, and a program beside /shell with the same program.
#
#   ABX_BUILDDIR=build t/bench/commands.pl [rounds [calls]]
#
# Calls are made one after the other, those that are compared in turns, since machines drift: quote the medians and ratios.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use LoadClient;
use Time::HiRes qw(time);

my ($rounds, $calls) = (@ARGV, 7, 1000);
my $server = AbxServer->prepare(env => { ABX_LOG_LEVEL => 'warning' });
my $primes = AbxServer::build_dir() . '/packaging/examples/commands/primes.so';

AbxServer::spew("$server->{commands}/primes.so", AbxServer::slurp($primes) || die "$primes is not built");
AbxServer::spew("$server->{commands}/one.json", '{"exec": ["echo", "1"]}');
$server->launch;
my $client = LoadClient->new($server);

sub quantile {
	my ($part, @values) = @_;
	my @sorted = sort { $a <=> $b } @values;

	return $sorted[$part * $#sorted];
}

# Microseconds of one call.
sub took {
	my ($method, $path, $body) = @_;
	my $begin = time;
	my ($status, $answer) = $client->request($method, $path, $body);

	die "$path: $status $answer" if $status != 200;
	return 1e6 * (time - $begin);
}

# Two calls in turns: their medians, and the median over the rounds of how they compare.
sub compare {
	my ($name, $call, $other_name, $other, $aim, $n) = @_;
	my (@p50, @other_p50, @ratios);

	for (1 .. $rounds) {
		my (@a, @b);
		for (1 .. $n) {
			push @a, took(@$call);
			push @b, took(@$other);
		}
		push @p50, quantile(0.5, @a);
		push @other_p50, quantile(0.5, @b);
		push @ratios, $p50[-1] / $other_p50[-1];
	}
	printf "%s, p50: %.0f us; %s: %.0f us; ratio %.2f (%.2f to %.2f; aim: %s)\n", $name, quantile(0.5, @p50), $other_name,
		quantile(0.5, @other_p50), quantile(0.5, @ratios), quantile(0, @ratios), quantile(1, @ratios), $aim;
}

compare('a native command', ['POST', '/commands/is_prime', '{"number": 2}'], '/health', ['GET', '/health'], '1.2', $calls);
compare('a program', ['POST', '/commands/one', '{}'], '/shell', ['POST', '/shell', '{"command": "echo 1"}'], '1.3', int($calls / 4));
