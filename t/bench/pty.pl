#!/usr/bin/perl
# Terminals beside a bare loop over a pseudo-terminal: `perl t/bench/pty.pl [rounds]` with a built tree. Times depend on the machine; look at the ratios.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use AbxWebSocket;
use POSIX ();

my $rounds = shift || 5;
my $ticks = POSIX::sysconf(POSIX::_SC_CLK_TCK());
my $client = AbxServer::build_dir() . '/t/bench/pty_client';
my $server = AbxServer->start;
my $file = $server->base . '/flood';
my ($ptyd) = grep { AbxServer::program_name($_) eq 'abx-ptyd' } AbxServer::children_of($server->pid);
my %result;

AbxServer::spew($file, join '', map { sprintf "%-98d\n", $_ } 1 .. 303_030);

sub median { my @sorted = sort { $a <=> $b } @_; return $sorted[@sorted / 2] }

sub run {
	my ($name, @args) = @_;
	my @figures = split ' ', `$client @args 2000 $file`;

	push @{ $result{$name}[$_] }, $figures[$_] for 0 .. 2;
}

for (1 .. $rounds) {
	run('bare pty', 'bare');
	for my $way (['direct', AbxWebSocket::pty_port($server)], ['through lighttpd', $server->port]) {
		my $id = AbxWebSocket::new_session($server);
		run($way->[0], $way->[1], $id);
		$server->delete("/pty/sessions/$id");
	}
}
printf "%-18s %10s %12s %12s\n", '', 'MB/s', 'echo p50 us', 'echo p99 us';
printf "%-18s %10.1f %12.0f %12.0f\n", $_, map { median(@$_) } @{ $result{$_} } for 'bare pty', 'direct', 'through lighttpd';

sub rss { return AbxServer::slurp("/proc/$ptyd/status") =~ /VmRSS:\s+(\d+)/ ? $1 : 0 }
my (undef, @fields) = split /\) /, AbxServer::slurp("/proc/$ptyd/stat");
my @times = (split ' ', $fields[0])[11, 12];
printf "abx-ptyd: %.2f s of processor time per 30 MB\n", ($times[0] + $times[1]) / $ticks / (2 * $rounds);
my $before = rss();
my @ids = map { AbxWebSocket::new_session($server) } 1 .. 10;
select undef, undef, undef, 0.5;
printf "abx-ptyd: %d kB, and %d kB more for ten idle sessions\n", $before, rss() - $before;
