# Confined commands (abx-exec), each restriction looked at from inside: as root, as root where namespaces are not permitted, and as an ordinary user.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use File::Copy;
use IO::Socket::INET;
use IO::Socket::UNIX;
use POSIX ();
use Test::More;

my $build = AbxServer::build_dir();
my $dir = AbxServer::temp_dir();
my $bin = "$dir/bin";

# Where every user may run them. abx-exec is looked for beside the program that starts it.
mkdir $bin;
for my $program ("$build/t/helper/confined", "$build/t/helper/no_call", "$build/t/helper/fd_dump", "$build/abx-exec") {
	my ($name) = $program =~ m{([^/]+)\z};
	copy($program, "$bin/$name") or BAIL_OUT("$program: $!");
	chmod 0755, "$bin/$name";
}
my $base = "$dir/base";
my ($uid, $gid) = (getpwnam 'nobody')[2, 3];
my $as_user;
my $landlock_version = q{perl -e 'print syscall(444, 0, 0, 1)'};
our @through; # what the server is run by

# Run a command confined by these options. Returns its exit status, standard output and standard error.
sub confined {
	my ($options, @command) = @_;
	my $pid = fork();

	die "fork: $!" unless defined $pid;
	if (!$pid) {
		if ($as_user) {
			$( = $) = "$gid $gid";
			POSIX::setgid($gid);
			POSIX::setuid($uid);
		}
		chdir $dir;
		%ENV = (PATH => '/usr/local/bin:/usr/bin:/bin', LC_ALL => 'C', SECRET => 'of-the-server');
		open STDIN, '<', '/dev/null';
		open STDOUT, '>', "$dir/out";
		open STDERR, '>', "$dir/err";
		{ no warnings; exec @through, "$bin/confined", @$options, '--', @command; }
		POSIX::_exit(126);
	}
	waitpid $pid, 0;
	return ($? & 127 ? -($? & 127) : $? >> 8, AbxServer::slurp("$dir/out"), AbxServer::slurp("$dir/err"));
}

sub bash {
	my ($options, $script) = @_;

	return confined($options, 'bash', '-c', $script);
}

# A script works, or not, in a confined shell.
sub can {
	my ($options, $script, $name) = @_;
	my ($status, $out, $err) = bash($options, $script);

	is $status, 0, $name or diag("$out$err");
	return $out;
}

sub cannot {
	my ($options, $script, $name) = @_;
	my ($status, $out, $err) = bash($options, $script);

	ok $status != 0 && $status != 125 && $status != 126 && $status != 127, $name or diag("$status\n$out$err");
	return $err;
}

# A new base directory, and something outside.
sub prepare {
	system 'rm', '-rf', $base, "$dir/outside";
	mkdir $_ for $base, "$base/sub", "$dir/outside";
	AbxServer::spew("$base/file", "inside\n", 0644);
	AbxServer::spew("$base/script", "#!/bin/sh\necho run\n", 0755);
	AbxServer::spew("$dir/outside/secret", "secret\n", 0666);
	AbxServer::spew("$dir/outside/script", "#!/bin/sh\necho run\n", 0755);
	symlink '../outside/secret', "$base/link";
	system 'chmod', '-R', 'a+rwX', $base, "$dir/outside";
	chmod 0666, "$dir/out", "$dir/err";
}

# ---- the file system

sub test_files {
	my @fs = ('filesystem', "tree=$base");
	my ($status, $out, $err);

	prepare();
	can(\@fs, 'test "$(cat file)" = inside', 'a file of the tree is read');
	can(\@fs, 'echo new >file; echo more >sub/new; mv sub/new moved; mkdir a; rmdir a; ln -s file ln; mkfifo fifo; truncate -s 1 file', 'and written, made, moved');
	can(\@fs, './script', 'a program of the tree is run');
	can(\@fs, 'test -r /etc/passwd && head -c1 /usr/bin/env >/dev/null && ls /usr/bin >/dev/null', 'the system is read');
	can(\@fs, 'head -c 10 /dev/urandom >/dev/null && head -c 1 /dev/zero >/dev/null && echo x >/dev/null', 'there are the usual devices');
	can(\@fs, 'cat /proc/self/status /proc/meminfo >/dev/null && test -e /dev/stdin && echo x >/dev/stdout', 'and its own /proc');
	cannot(\@fs, 'cat ../outside/secret', 'no file outside is read');
	cannot(\@fs, 'cat link', 'nor through a link');
	cannot(\@fs, "cat /proc/self/root$dir/outside/secret", 'nor by a magic one');
	cannot(\@fs, 'ls ../outside', 'no directory outside is listed');
	cannot(\@fs, 'ls /', 'not even the root');
	cannot(\@fs, 'echo x >../outside/secret', 'no file outside is written');
	cannot(\@fs, 'truncate -s 0 ../outside/secret', 'nor cut');
	cannot(\@fs, 'perl -e "exit !truncate q(../outside/secret), 0"', 'nor by its name');
	cannot(\@fs, 'mv file ../outside/', 'nothing is moved out');
	cannot(\@fs, 'ln ../outside/secret here', 'nothing gets a second name');
	cannot(\@fs, 'rm -f ../outside/secret && test ! -e ../outside/secret', 'nothing is deleted');
	is AbxServer::slurp("$dir/outside/secret"), "secret\n", 'the file outside is as it was';
	cannot(\@fs, 'test "$(../outside/script)" = run', 'no program outside is run');
	cannot(\@fs, "echo x >$_/abx-test-x", "$_ is not written") for '/tmp', '/var/tmp', '/etc', '/usr', '/dev/shm', '/run';
	ok !-e '/tmp/abx-test-x', 'nothing is there';
	cannot(\@fs, 'echo 0 >/proc/self/oom_score_adj', '/proc is not written');
	cannot(\@fs, "tr '\\0' '\\n' </proc/$$/environ", 'no environment of another process is read');
	cannot(\@fs, "readlink /proc/$$/fd/0", 'nor what its descriptors are');
	cannot(\@fs, "cat /proc/$$/root/etc/passwd", 'nor its directories');
	cannot(\@fs, 'mknod node c 1 3', 'no device is made');
	cannot(\@fs, 'mount -t tmpfs x sub', 'nothing is mounted');
	cannot(\@fs, 'unshare -Ur true', 'no namespace is made');
	cannot(\@fs, 'unshare -m true', 'none of any kind');
	cannot(['filesystem', "tree=$base", "tree=$dir/outside"], 'cat /dev/mem', 'no memory of the system is read') if !$as_user;
	can(['filesystem', "tree=$base", "tree=$dir/outside"], 'cat ../outside/secret && ../outside/script', 'several trees can be given');
	can(['filesystem', "tree=$base"], 'exec 3</dev/tcp/127.0.0.1/1 || true', 'the network is another thing');
	my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die $!;
	can(\@fs, "exec 3<>/dev/tcp/127.0.0.1/${\ $listener->sockport}", 'it is there');

	($status, $out) = confined(\@fs, 'ps', '-eo', 'args=');
	my @others = grep { !/\Aps / } split /\n/, $out;
	if ($as_user || @through) {
		ok @others > 0, 'where mounting is not permitted the names of other processes show';
	} else {
		is_deeply \@others, [], 'no other process shows';
	}
	# Version 6 of Landlock, which the kernel may be too old for.
	SKIP: {
		skip 'the kernel cannot keep signals in', 1 if can([], $landlock_version, 'the version of Landlock') < 6;
		cannot(\@fs, 'kill -CONT $PPID', 'no signal reaches the server');
	}
}

# ---- the network

sub test_network {
	my @off = ('no-network', "tree=$base");
	my $tcp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 50) or die $!;
	my $udp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp') or die $!;
	my $abstract = IO::Socket::UNIX->new(Local => "\0abx-test-$$", Listen => 5) or die $!;
	my $send = "perl -MIO::Socket::INET -e 'exit !(my \$s = IO::Socket::INET->new(PeerAddr => q(127.0.0.1), PeerPort => ${\ $udp->sockport}, Proto => q(udp)));"
		. " exit !(\$s && send \$s, q(x), 0)'";
	my $talk = q{perl -MIO::Socket::UNIX -e 'exit !IO::Socket::UNIX->new(Peer => "\0abx-test-} . $$ . q{")'};

	prepare();
	can([], "exec 3<>/dev/tcp/127.0.0.1/${\ $tcp->sockport}", 'without confinement a port is reached');
	can([], $talk, 'and an abstract socket');
	cannot(\@off, "exec 3<>/dev/tcp/127.0.0.1/${\ $tcp->sockport}", 'with it, none');
	bash(\@off, $send);
	my $ready = '';
	vec($ready, fileno($udp), 1) = 1;
	is select($ready, undef, undef, 0), 0, 'no datagram comes';
	SKIP: {
		skip 'the kernel cannot keep these in', 1 if ($as_user || @through) && can([], $landlock_version, 'the version of Landlock') < 6;
		cannot(\@off, $talk, 'no abstract socket is reached');
	}
	cannot(\@off, "perl -MSocket -e 'exit !socket(my \$s, AF_INET, SOCK_RAW, 1)'", 'no raw socket is made') if $as_user || @through;
	can(\@off, "perl -MSocket -e 'socketpair(my \$a, my \$b, AF_UNIX, SOCK_STREAM, 0) or die'", 'Unix sockets work');
	my ($status, $out) = bash(\@off, 'cat /proc/net/dev | tail -n +3');
	unlike $out, qr/eth|ens|enp/, 'no interface but the loopback' unless $as_user || @through;
	cannot(\@off, "nsenter --net=/proc/$$/ns/net true", 'the old network is not entered');
	cannot(\@off, 'unshare -n true', 'nor another one');
	cannot(\@off, "ip link add veth0 type veth peer name veth1 netns $$", 'nor linked to');
	can(\@off, 'echo x >../outside/secret', 'files are another thing');
	is AbxServer::slurp("$dir/outside/secret"), "x\n", 'they are there';
	cannot(\@off, "tr '\\0' '\\n' </proc/$$/environ", 'the environment of a process outside is not read');
	cannot(['no-network', 'filesystem', "tree=$base"], "cat ../outside/secret || exec 3<>/dev/tcp/127.0.0.1/${\ $tcp->sockport}", 'both together');
}

# ---- powers and limits

sub test_powers {
	my ($status, $out, $err);

	prepare();
	for my $options (['no-new-privs'], ['filesystem', "tree=$base"], ['no-network']) {
		$out = can($options, 'grep -E "NoNewPrivs|Seccomp:|CapEff" /proc/self/status', "$options->[0]: its status");
		like $out, qr/NoNewPrivs:\t1/, "$options->[0]: no new privileges";
		like $out, qr/Seccomp:\t2/, "$options->[0]: a filter";
		my ($caps) = $out =~ /CapEff:\t([0-9a-f]+)/;
		# SYS_ADMIN, SYS_MODULE, SYS_PTRACE, NET_ADMIN, SYS_RESOURCE, MKNOD, BPF
		is hex($caps) & (1 << 21 | 1 << 16 | 1 << 19 | 1 << 12 | 1 << 24 | 1 << 27 | 1 << 39), 0, "$options->[0]: none of root's great powers" if $options->[0] ne 'no-new-privs';
		cannot($options, q{perl -e 'exit(syscall(425, 1, 0) < 0 ? 1 : 0)'}, "$options->[0]: no io_uring");
	}

	my $hungry = q{perl -e 'my $x = "x" x 300_000_000; print length $x'};
	is can([], $hungry, 'much memory'), 300_000_000, 'is there without a limit';
	cannot(['memory=100000000'], $hungry, 'and not with one');
	is can(['memory=100000000'], 'echo enough', 'a small program'), "enough\n", 'has enough';
	cannot(['memory=100000000'], "ulimit -d unlimited && $hungry", 'the limit is not raised again');
	($status) = bash(['cpu=1'], 'while :; do :; done');
	ok $status == 128 + 9 || $status == 128 + 24, "CPU time ends ($status)";
	if ($as_user) {
		cannot(['processes=1'], '(true); true & wait; exit $?', 'no process can be started past the limit');
	} else {
		($status, $out, $err) = bash(['processes=10'], 'echo run');
		is $status, 125, 'a limit that cannot be had';
		like $err, qr/\Arefused: 500 RuntimeError Cannot confine the command: The kernel does not limit root's processes/, 'is refused, and not left out';
		is $out, '', 'nothing is run';
	}
}

# ---- the start

sub test_start {
	my @fs = ('filesystem', "tree=$base");
	my ($status, $out, $err);

	prepare();
	($status, $out) = confined(\@fs, '/bin/sh', '-c', 'echo "$0|$1|$#|$A|$SECRET"; pwd', 'zero', 'a b');
	is $out, "zero|a b|1||of-the-server\n$base\n", 'arguments, environment and directory arrive';
	($status, $out) = confined([@fs, 'A=x', 'LD_PRELOAD=/nonexistent.so'], '/bin/sh', '-c', 'echo $A; exit 7');
	is $status, 7, 'so does the exit status';
	is $out, "x\n", 'and a variable';
	($status, $out, $err) = confined([@fs, 'LD_PRELOAD=/nonexistent.so'], '/bin/true');
	is scalar(() = $err =~ /nonexistent/g), 1, 'what the caller sets for the loader is for the program alone';
	is can(\@fs, 'echo ${INVOCATION_ID:+marked}', 'it is marked'), "marked\n", 'as every child is';
	copy("$bin/fd_dump", "$base/fd_dump");
	chmod 0755, "$base/fd_dump";
	($status, $out) = confined(\@fs, './fd_dump');
	is_deeply [$out =~ /^(\d+)/mg], [0, 1, 2], 'no descriptor but three';
	($status, $out, $err) = bash(\@fs, 'kill -9 $$');
	is $status, 137, 'a signal is a signal';
	($status, $out, $err) = confined(\@fs, 'no-such-program');
	like $err, qr/\Arefused: 500 FileNotFoundError \[Errno 2\] No such file or directory: 'no-such-program'/, 'a missing program';
	($status, $out, $err) = confined(\@fs, '../outside/script');
	like $err, qr/\Arefused: 500 PermissionError \[Errno 13\] Permission denied: '\.\.\/outside\/script'/, 'one that it may not run';
	AbxServer::spew("$base/lost", "#!/no/such/interpreter\n", 0755);
	($status, $out, $err) = confined(\@fs, './lost');
	like $err, qr/\Arefused: 500 FileNotFoundError \[Errno 2\]/, 'one without its interpreter';
}

# What cannot be given up is not skipped.
sub test_fail_closed {
	my @fs = ('filesystem', "tree=$base");
	my ($status, $out, $err);

	prepare();
	for my $case ([[38, 'landlock_create_ruleset'], \@fs, qr/The kernel has no Landlock/], [[1, 'landlock_restrict_self'], \@fs, qr/Landlock/],
		      [[38, 'seccomp'], ['no-network'], undef], [[1, 'seccomp', 'prctl'], ['no-network'], qr/./], [[1, 'setrlimit', 'prlimit64'], ['memory=1000000000'], qr/limit of memory/],
		      [[12, 'unshare'], ['no-network'], qr/network namespace/]) {
		my ($refused, $options, $message) = @$case;
		local @through = ("$bin/no_call", @$refused, '--');

		($status, $out, $err) = bash($options, 'echo run');
		next if !$message; # libseccomp has another way to the same end
		is $status, 125, "without @$refused[1 .. $#$refused]: refused";
		like $err, qr/\Arefused: 500 RuntimeError Cannot confine the command: /, 'it is told';
		like $err, $message, 'and why';
		is $out, '', 'nothing is run';
	}
	rename "$bin/abx-exec", "$bin/away";
	($status, $out, $err) = bash(\@fs, 'echo run');
	is $status, 125, 'without abx-exec: refused';
	like $err, qr/Cannot confine the command: /, 'it is told';
	is $out, '', 'nothing is run';
	AbxServer::spew("$bin/abx-exec", "#!/bin/sh\nexit 0\n", 0755);
	($status, $out, $err) = bash(\@fs, 'echo run');
	is $out, '', 'another program in its place runs nothing';
	unlink "$bin/abx-exec";
	rename "$bin/away", "$bin/abx-exec";
}

sub test_all {
	subtest "$_[0]: files", \&test_files;
	subtest "$_[0]: network", \&test_network;
	subtest "$_[0]: powers and limits", \&test_powers;
	subtest "$_[0]: start", \&test_start;
}

if ($> == 0) {
	test_all('root');
	{
		local @through = ("$bin/no_call", 1, 'unshare', '--');
		test_all('root without namespaces');
	}
	subtest 'fail closed', \&test_fail_closed;
	$as_user = 1;
	test_all('nobody');
} else {
	$as_user = $uid = $>;
	test_all('ordinary user');
}
subtest 'fail closed, ordinary user', \&test_fail_closed;
done_testing;
