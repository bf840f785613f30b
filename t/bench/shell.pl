#!/usr/bin/perl
# What a command costs: POST /shell of `true` beside a bare loop of posix_spawn and wait, at 16 connections beside the Python server, the slowest of
# 8 in parallel; how soon the first event of a stream is there; how late a timeout is.
#
#   ABX_BUILDDIR=build t/bench/shell.pl [rounds [calls]]
#
# Needs wrk and python3. Rounds are interleaved, since machines drift: quote the medians and ratios.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use LoadClient;
use POSIX ();
use Time::HiRes qw(time sleep);

my ($rounds, $calls) = (@ARGV, 5, 500);
my $server = AbxServer->start(env => { ABX_LOG_LEVEL => 'warning' });
my $python;

END { kill 'TERM', $python if $python; }

# The value that a part of all is not above.
sub quantile {
	my ($part, @values) = @_;
	my @sorted = sort { $a <=> $b } @values;

	return $sorted[$part * $#sorted];
}

# Microseconds of each call, one after the other.
sub calls {
	my ($n) = @_;
	my $client = LoadClient->new($server);

	return map {
		my $begin = time;
		my ($status) = $client->post('/shell', '{"command": "true"}');
		die "status $status" if $status != 200;
		1e6 * (time - $begin);
	} 1 .. $n;
}

sub loop {
	my ($n) = @_;

	return map { $_ + 0 } split /\n/, `${\ AbxServer::build_dir()}/t/bench/spawn_loop $n true`;
}

# The same by several processes at a time.
sub parallel_calls {
	my ($parallel, $n) = @_;
	my (@all, @pipes);

	for (1 .. $parallel) {
		my $pid = open my $out, '-|';
		if (!$pid) {
			print map { "$_\n" } calls($n);
			close STDOUT;
			POSIX::_exit(0);
		}
		push @pipes, $out;
	}
	push @all, <$_> for @pipes;
	return @all;
}

sub wrk {
	my ($url) = @_;
	my $script = $server->dir . '/post.lua';

	AbxServer::spew($script, qq{wrk.method = "POST"\nwrk.body = '{"command": "true"}'\nwrk.headers["Content-Type"] = "application/json"\n});
	my $said = `wrk -t2 -c16 -d3s -s $script $url`;
	my ($rate) = $said =~ m{Requests/sec:\s+([\d.]+)} or die "wrk: $said";
	warn "$url: $said" if $said =~ /Non-2xx/;
	return $rate;
}

# Milliseconds from the writing of each line to its event.
sub first_events {
	my ($n) = @_;
	my $socket = $server->connect;
	my $body = AbxServer::encode_json({ command => "perl -MTime::HiRes=time,sleep -e '\$| = 1; for (1 .. $n) { sleep 0.02; printf qq(at %.6f\\n), time }'" });
	my ($buffer, @took) = ('');

	syswrite $socket, "POST /shell/stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${\ length $body}\r\n\r\n$body";
	while (sysread $socket, $buffer, 65536, length $buffer) {
		my $now = time;
		push @took, 1000 * ($now - $1) while $buffer =~ s/at ([\d.]+)//;
	}
	return @took;
}

my (@loop, @calls, @ours, @theirs, @p99);
my $port = AbxServer::free_port();
my $script = "$FindBin::Bin/python_server.py";
if (-e $script) {
	$python = fork();
	if (!$python) {
		open STDERR, '>', '/dev/null';
		exec 'python3', $script, $port, $server->base;
	}
	AbxServer::wait_for(sub { HTTP::Tiny->new->get("http://127.0.0.1:$port/health")->{success} }) or die 'the Python server does not answer';
}
for (1 .. $rounds) {
	push @loop, quantile(0.5, loop($calls));
	push @calls, quantile(0.5, calls($calls));
	push @p99, quantile(0.99, parallel_calls(8, $calls / 4));
	push @ours, wrk($server->url('/shell'));
	push @theirs, wrk("http://127.0.0.1:$port/shell") if $python;
}
printf "posix_spawn and wait, p50: %.0f us; /shell true, p50: %.0f us; ratio %.2f\n", quantile(0.5, @loop), quantile(0.5, @calls),
	quantile(0.5, @calls) / quantile(0.5, @loop);
printf "8 in parallel, p99: %.1f ms\n", quantile(0.5, @p99) / 1000;
printf "16 connections: %.0f requests/s%s\n", quantile(0.5, @ours), $python
	? sprintf '; the Python server %.0f; ratio %.2f', quantile(0.5, @theirs), quantile(0.5, @ours) / quantile(0.5, @theirs) : '';
my @events = map { first_events(50) } 1 .. $rounds;
printf "from a write to its event: p50 %.2f ms, the slowest of %d %.2f ms\n", quantile(0.5, @events), scalar @events, quantile(1, @events);
for my $command (q(bash -c 'sleep 10 & sleep 10'), q(bash -c 'setsid sleep 10 & sleep 10')) {
	my $client = LoadClient->new($server);
	my @took = map {
		my $begin = time;
		$client->post('/shell', AbxServer::encode_json({ command => $command, timeout => 0.5 }));
		1000 * (time - $begin);
	} 1 .. $rounds;
	printf "a timeout of 500 ms of %s is answered after %.0f ms, at most %.0f\n", $command, quantile(0.5, @took), quantile(1, @took);
}
