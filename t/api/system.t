#!/usr/bin/perl
# system_info, system_metrics, ports and packages: the figures against those of the machine, and what becomes of programs that are missing, fail or hang.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use IO::Socket::INET;
use POSIX ();
use Socket qw(AF_INET6 SOCK_STREAM inet_pton pack_sockaddr_in6 unpack_sockaddr_in6);
use Test::More;

my $server = AbxServer->start;

# What JSON has as numbers is compared as written: a rounded number has no more digits than it was rounded to.
sub is_rounded {
	my ($content, $key, $places) = @_;

	like $content, qr/"\Q$key\E": -?\d+\.\d{1,$places}(?:,|\})/, "$key has at most $places places";
}

sub meminfo {
	my ($name) = @_;

	return AbxServer::slurp('/proc/meminfo') =~ /^\Q$name\E:\s+(\d+) kB/m ? $1 : undef;
}

# Bytes of the file system of "/": all, free for us, used.
sub df {
	my @fields = split ' ', (split /\n/, `df -k -P /`)[1];

	return ($fields[1] * 1024, $fields[3] * 1024, $fields[2] * 1024);
}

sub about {
	my ($got, $want, $tolerance, $what) = @_;

	ok defined $got && abs($got - $want) <= $tolerance, $what or diag 'got ' . ($got // 'nothing') . ", want $want";
}

sub keys_in_order {
	my ($content) = @_;

	return [$content =~ /"(\w+)": /g];
}

subtest 'info' => sub {
	my $answer = $server->get('/system/info');
	my $info = $answer->{json};
	my ($os, $host, undef, undef, $arch) = POSIX::uname();
	my ($total, $free) = df();
	my ($version) = `python3 -V 2>/dev/null` =~ /\APython (\S+)/;

	is $answer->{status}, 200, 'is answered';
	is_deeply keys_in_order($answer->{content}), [qw(os arch cpu_count memory_total_mb memory_available_mb disk_total_gb disk_free_gb
		python_version hostname)], 'the fields';
	is $info->{os}, $os, 'os';
	is $info->{arch}, $arch, 'arch';
	is $info->{hostname}, $host, 'hostname';
	is $info->{cpu_count}, scalar(() = AbxServer::slurp('/proc/stat') =~ /^cpu\d+ /mg), 'cpu_count';
	is $info->{memory_total_mb}, int(meminfo('MemTotal') / 1024), 'memory_total_mb';
	about($info->{memory_available_mb}, meminfo('MemAvailable') / 1024, 2048, 'memory_available_mb');
	about($info->{disk_total_gb}, $total / 2**30, 0.01, 'disk_total_gb');
	about($info->{disk_free_gb}, $free / 2**30, 2, 'disk_free_gb');
	is_rounded($answer->{content}, $_, 2) for qw(disk_total_gb disk_free_gb);
	is $info->{python_version}, $version, 'python_version';
};

subtest 'metrics' => sub {
	my @before = split ' ', AbxServer::slurp('/proc/loadavg');
	my $answer = $server->get('/system/metrics');
	my @after = split ' ', AbxServer::slurp('/proc/loadavg');
	my $metrics = $answer->{json};
	my ($total, undef, $used) = df();
	my $memory = meminfo('MemTotal') / 1024;

	is $answer->{status}, 200, 'is answered';
	is_deeply keys_in_order($answer->{content}), [qw(cpu_load_1m cpu_load_5m cpu_load_15m memory_used_mb memory_total_mb memory_percent
		disk_used_gb disk_total_gb disk_percent uptime_seconds memory_limit_mb memory_current_mb cpu_limit)], 'the fields';
	my @loads = qw(cpu_load_1m cpu_load_5m cpu_load_15m);
	for my $i (0 .. 2) {
		my $load = $metrics->{$loads[$i]};
		# /proc rounds the kernel's fractions a little differently.
		ok abs($load - $before[$i]) < 0.015 || abs($load - $after[$i]) < 0.015, $loads[$i] or diag "$load: neither $before[$i] nor $after[$i]";
	}
	about($metrics->{memory_total_mb}, $memory, 0.006, 'memory_total_mb');
	about($metrics->{memory_used_mb}, $memory - meminfo('MemAvailable') / 1024, 2048, 'memory_used_mb');
	about($metrics->{memory_percent}, 100 * $metrics->{memory_used_mb} / $memory, 0.051, 'memory_percent');
	about($metrics->{disk_total_gb}, $total / 2**30, 0.01, 'disk_total_gb');
	about($metrics->{disk_used_gb}, $used / 2**30, 2, 'disk_used_gb');
	about($metrics->{disk_percent}, 100 * $metrics->{disk_used_gb} / $metrics->{disk_total_gb}, 0.1, 'disk_percent');
	is_rounded($answer->{content}, $_, 2) for qw(cpu_load_1m memory_used_mb memory_total_mb disk_used_gb disk_total_gb uptime_seconds);
	is_rounded($answer->{content}, $_, 1) for qw(memory_percent disk_percent);
};

subtest 'uptime is the server\'s' => sub {
	my $before = $server->get('/system/metrics')->{json}{uptime_seconds};
	my $pid = $server->responder('system');

	kill 'KILL', $pid;
	ok AbxServer::wait_for(sub { my $now = $server->responder('system'); $now && $now != $pid }), 'another responder comes';
	my $after = $server->get('/system/metrics')->{json}{uptime_seconds};
	cmp_ok $after, '>=', $before, 'it goes on';
	my ($hertz, $started) = (POSIX::sysconf(POSIX::_SC_CLK_TCK()), (split ' ', AbxServer::slurp('/proc/' . $server->pid . '/stat') =~ s/.*\) //sr)[19]);
	about($after, (split ' ', AbxServer::slurp('/proc/uptime'))[0] - $started / $hertz, 5, 'and is as old as abxd');
};

subtest 'the cgroup' => sub {
	my ($own) = AbxServer::slurp('/proc/self/cgroup') =~ m{^0::(/.*)$}m;
	my ($mount) = AbxServer::slurp('/proc/self/mountinfo') =~ m{^\S+ \S+ \S+ / (\S+) .* - cgroup2 }m;
	my $metrics = $server->get('/system/metrics')->{json};

	if (!$own || !$mount) {
		is $metrics->{$_}, undef, "without cgroup v2 no $_" for qw(memory_limit_mb memory_current_mb cpu_limit);
		return;
	}
	my $group = ($mount . ($own eq '/' ? '' : $own)) . "/abx-test-$$";
	if (!mkdir $group) {
		plan skip_all => "no cgroup can be made: $!";
	}
	if (!-e "$group/memory.max") {
		rmdir $group;
		is $metrics->{memory_limit_mb}, undef, 'without the memory controller no limit';
		plan skip_all => 'cgroup v2 has no memory controller here';
	}
	AbxServer::spew("$group/memory.max", 512 << 20);
	AbxServer::spew("$group/cpu.max", '150000 100000') if -e "$group/cpu.max";
	my $pid = $server->responder('system');
	AbxServer::spew("$group/cgroup.procs", $pid);
	$metrics = $server->get('/system/metrics')->{json};
	is $metrics->{memory_limit_mb}, 512, 'memory_limit_mb';
	about($metrics->{memory_current_mb}, AbxServer::slurp("$group/memory.current") / 2**20, 4, 'memory_current_mb');
	is $metrics->{cpu_limit}, 1.5, 'cpu_limit' if -e "$group/cpu.max";
	kill 'KILL', $pid;
	ok AbxServer::wait_for(sub { rmdir $group }), 'the cgroup goes';
};

# ---- ports

sub listening {
	my ($port, $protocol) = @_;

	return grep { $_->{port} == $port && $_->{protocol} eq $protocol } @{ $server->get('/ports')->{json}{listening} };
}

subtest 'ports' => sub {
	my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1) or die "listen: $!";
	my $port = $socket->sockport;
	my $client = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die "connect: $!";
	my $answer = $server->get('/ports');

	is $answer->{status}, 200, 'are answered';
	like $answer->{content}, qr/\A\{"listening": \[\{"port": \d+, "protocol": "tcp6?", "address": "[^"]+", "pid": (?:\d+|null)\}/, 'the fields';
	is_deeply [listening($port, 'tcp')], [{ port => $port, protocol => 'tcp', address => '127.0.0.1', pid => $$ }], 'one of ours';
	is scalar(listening($client->sockport, 'tcp')), 0, 'a connected socket does not listen';
	is scalar(listening($server->port, 'tcp')), 1, "the server's own is there";
	close $socket;
	ok AbxServer::wait_for(sub { !listening($port, 'tcp') }), 'a closed one is not';
};

subtest 'ports of IPv6' => sub {
	socket my $socket, AF_INET6, SOCK_STREAM, 0 or plan skip_all => 'no IPv6';
	bind $socket, pack_sockaddr_in6(0, inet_pton(AF_INET6, '::1')) or plan skip_all => 'no ::1';
	listen $socket, 1 or die "listen: $!";
	my ($port) = unpack_sockaddr_in6(getsockname $socket);

	is_deeply [listening($port, 'tcp6')], [{ port => $port, protocol => 'tcp6', address => '::1', pid => $$ }], 'one of ours';
};

# ---- packages

# A server whose PATH has only what the test puts there. Each program is a script of the shell, or leads to a real one.
sub with_programs {
	my (%programs) = @_;
	my $bin = AbxServer::temp_dir();
	my ($lighttpd) = grep { -x } map { "$_/lighttpd" } split(/:/, $ENV{PATH}), '/usr/sbin', '/usr/local/sbin';

	symlink $lighttpd, "$bin/lighttpd";
	AbxServer::spew("$bin/$_", "#!/bin/sh\n$programs{$_}\n", 0755) for keys %programs;
	my $other = AbxServer->start(env => { PATH => "$bin" });
	$other->{test_bin} = $bin;
	return $other;
}

subtest 'programs that are missing' => sub {
	my $other = with_programs();

	is_deeply $other->get('/packages')->{json}, { manager => 'pip', packages => [] }, 'no python3';
	is_deeply $other->get('/packages?manager=npm')->{json}, { manager => 'npm', packages => [] }, 'no npm';
	my $info = $other->get('/system/info');
	is $info->{status}, 200, 'info without python3';
	is $info->{json}{python_version}, undef, 'has no version of it';
	$other->stop;
};

subtest 'what programs say' => sub {
	my $dir = AbxServer::temp_dir();
	my $other = with_programs(
		python3 => "if [ \"\$1\" = -V ]; then echo 'Python 3.99.1'; exit; fi\npwd > $dir/pip.cwd\necho \"\$*\" > $dir/pip.args\n. $dir/pip",
		npm => "pwd > $dir/npm.cwd\necho \"\$*\" > $dir/npm.args\n. $dir/npm");
	my $base = $other->base;

	AbxServer::spew("$dir/pip", "echo '[{\"name\": \"b\", \"version\": \"1.0\", \"editable_project_location\": \"/x\"}, {\"name\": \"\xc3\xa4\", \"version\": \"2\"}]'; echo warning >&2");
	is_deeply $other->get('/packages?manager=pip')->{json}, { manager => 'pip', packages => [{ name => 'b', version => '1.0' },
		{ name => "\x{e4}", version => '2' }] }, 'a list of pip';
	is $other->get('/packages')->{content}, qq({"manager": "pip", "packages": [{"name": "b", "version": "1.0"}, {"name": "\xc3\xa4", "version": "2"}]}),
		'which is the default';
	like AbxServer::slurp("$dir/pip.args"), qr/\A-m pip list --format json\b/, 'how it was called';
	is AbxServer::slurp("$dir/pip.cwd"), "/\n", 'from where no caller has put modules';

	AbxServer::spew("$dir/pip", "echo 'python3: No module named pip' >&2; exit 1");
	is_deeply $other->get('/packages')->{json}{packages}, [], 'no pip';
	AbxServer::spew("$dir/pip", "echo 'something broke' >&2; echo; exit 3");
	my $answer = $other->get('/packages');
	is $answer->{status}, 500, 'a pip that fails';
	like $answer->{json}{error}, qr/something broke/, 'says why';
	is $answer->{json}{type}, 'RuntimeError', 'the type';

	AbxServer::spew("$dir/npm", 'echo \'{"name": "x", "dependencies": {"left-pad": {"version": "1.3.0"}, "gone": {"missing": true}, "@a/b": {"version": "2.0.0", "extraneous": true}}}\'; exit 1');
	is_deeply $other->get('/packages?manager=npm')->{json}, { manager => 'npm', packages => [{ name => 'left-pad', version => '1.3.0' },
		{ name => '@a/b', version => '2.0.0' }] }, 'a list of npm, whatever its exit code';
	is AbxServer::slurp("$dir/npm.cwd"), "$base\n", 'of the base directory';
	like AbxServer::slurp("$dir/npm.args"), qr/\Alist --json --depth=0\b/, 'how it was called';
	AbxServer::spew("$dir/npm", 'echo "{}"');
	is_deeply $other->get('/packages?manager=npm')->{json}{packages}, [], 'no packages';

	is $other->get('/system/info')->{json}{python_version}, '3.99.1', 'the version of that python3';
	for my $manager ('', 'apt', 'PIP', 'pip%00') {
		$answer = $other->get("/packages?manager=$manager");
		is $answer->{status}, 400, "manager '$manager'";
		is $answer->{json}{type}, 'ValueError', 'the type';
	}

	AbxServer::spew("$dir/pip", 'PATH=/bin:/usr/bin; sleep 1000 & wait');
	$answer = $other->get('/packages');
	is $answer->{status}, 500, 'one that hangs';
	is $answer->{json}{type}, 'TimeoutError', 'is told as such';
	my $system = $other->responder('system');
	ok AbxServer::wait_for(sub { !AbxServer::descendants_of($system) }), 'and ended, with what it had started';
	$other->stop;
};

subtest 'the real pip' => sub {
	my $list = AbxServer::decode_json(scalar `cd / && python3 -m pip list --format json --disable-pip-version-check 2>/dev/null`);

	plan skip_all => 'there is no pip' unless $list;
	my $answer = $server->get('/packages');
	is $answer->{status}, 200, 'is asked inside of the cage';
	is_deeply [map { "$_->{name} $_->{version}" } @{ $answer->{json}{packages} }], [map { "$_->{name} $_->{version}" } @$list], 'and says the same';
};

is $server->stop, 0, 'the server ends well';

done_testing;
