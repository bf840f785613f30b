#!/usr/bin/perl
# What the gate costs: requests per second of /files/stat with a policy of 50 rules and 20 identities (the last of which calls), beside a server without a policy.
#
#   ABX_BUILDDIR=build t/bench/policy.pl [rounds [seconds]]
#
# Needs wrk. Rounds are interleaved, since machines drift: quote the medians and the ratio. t/bench/gate measures the gate alone.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxPolicy;
use AbxServer;
use POSIX ();

my ($rounds, $seconds) = (@ARGV, 5, 3);

sub median {
	my @sorted = sort { $a <=> $b } @_;

	return $sorted[@sorted / 2];
}

# 50 endpoints, each with scopes, paths and a rate.
sub document {
	my ($ids, $identities) = @_;
	my $text = "version: 1\nendpoints:\n";

	$text .= "  $_: {scopes: [\"use:$_\"], limits: {rate: 1000000/min, max_concurrent: 1000}}\n" for grep { $_ ne 'files_stat' } @$ids;
	$text .= "  files_stat: {scopes: [\"use:files_stat\"], limits: {rate: 1000000/min, max_concurrent: 1000}, paths: {deny: [\"**/.ssh/**\", \"**/*.key\"]}}\n";
	$text .= "identities:\n";
	$text .= "  - {id: id$_, token_env: TOKEN_$_, scopes: [\"other:*\", \"use:*\"]}\n" for 1 .. $identities;
	return $text;
}

# Seconds of processor time that the responder and the web server have used.
sub cpu {
	my ($server) = @_;
	my $ticks = 0;

	for my $pid ($server->responders('file_ops'), $server->lighttpd) {
		my @fields = split ' ', AbxServer::slurp("/proc/$pid/stat") =~ s/\A.*\) //sr;
		$ticks += $fields[11] + $fields[12];
	}
	return $ticks / POSIX::sysconf(POSIX::_SC_CLK_TCK());
}

# Requests per second, and microseconds of processor time per request, which other work on the machine disturbs less.
sub measure {
	my ($server, @headers) = @_;
	my $url = $server->url('/files/stat?path=file');
	my $before = cpu($server);
	my $said = `wrk -t2 -c16 -d${seconds}s @headers '$url'`;
	my ($rate) = $said =~ m{Requests/sec:\s+([\d.]+)} or die "wrk: $said";
	my ($requests) = $said =~ /(\d+) requests in/;

	die $said if $said =~ /Non-2xx/;
	return ($rate, 1e6 * (cpu($server) - $before) / $requests);
}

my $plain = AbxServer->start(env => { ABX_LOG_LEVEL => 'warning' });
my @ids = grep { !/\A(?:health|agents_)/ } sort keys %{ $plain->get('/capabilities')->{json}{endpoints} };
push @ids, grep { /\Aagents_/ } sort keys %{ $plain->get('/capabilities')->{json}{endpoints} };
my %env = map { ("TOKEN_$_" => "token-number-$_") } 1 .. 20;
my $with = start_with(document([@ids[0 .. 49]], 20), env => { ABX_LOG_LEVEL => 'warning', %env });

AbxServer::spew($_->base . '/file', 'x') for $plain, $with;
my (%rates, %cpu);
for (1 .. $rounds) {
	for my $run (['without', $plain], ['with', $with, '-H', "'Authorization: Bearer token-number-20'"]) {
		my ($name, @args) = @$run;
		my ($rate, $us) = measure(@args);
		push @{ $rates{$name} }, $rate;
		push @{ $cpu{$name} }, $us;
	}
}
my ($rate, $rate_with, $us, $us_with) = map { median(@$_) } @rates{qw(without with)}, @cpu{qw(without with)};
printf "/files/stat at 16 connections: %.0f requests/s without a policy, %.0f with 50 rules and 20 identities (%+.1f %%)\n", $rate, $rate_with,
	100 * ($rate_with / $rate - 1);
printf "processor time of a request: %.1f us without, %.1f us with (%+.1f %%)\n", $us, $us_with, 100 * ($us_with / $us - 1);
