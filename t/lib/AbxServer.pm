# A server for a test: on a free port, with run, base and spool directories of its own, stopped and removed when the object goes.
#
#   my $server = AbxServer->start(env => { ABX_SERVER_TOKEN => 'x' }, token => 'x');
#   my $answer = $server->post('/shell', { command => 'true' });      # status, headers, content, json
#   $server->stop;
#
# The programs are taken from $ABX_BIN_DIR, else from the build directory $ABX_BUILDDIR, else from build/ in the tree.
package AbxServer;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Copy ();
use File::Temp ();
use HTTP::Tiny;
use IO::Socket::INET;
use JSON::PP ();
use POSIX qw(:sys_wait_h);
use Test::More ();
use Time::HiRes ();

# How long anything may take that is waited for: generous, since no test is about time.
our $PATIENCE = 60;

my $ROOT = abs_path(dirname(__FILE__) . '/../..');
my $JSON = JSON::PP->new->utf8->allow_nonref;

# ---- where the programs are

sub build_dir {
	return abs_path($ENV{ABX_BUILDDIR} || "$ROOT/build");
}

# Whether the programs are those of a sanitizer build: they need more memory, and other descriptors, than what people get.
sub sanitized {
	return slurp(build_dir() . '/Makefile') =~ /^HARDEN_CFLAGS = .*-fsanitize=address/m;
}

sub bin_dir {
	return abs_path($ENV{ABX_BIN_DIR} || build_dir());
}

# ---- small helpers that tests use, too

# Call the function until it returns something true, which is returned; undef when patience ends.
sub wait_for {
	my ($function, $patience) = @_;
	my $end = Time::HiRes::time() + ($patience || $PATIENCE);

	while (1) {
		my $value = $function->();
		return $value if $value;
		return undef if Time::HiRes::time() > $end;
		Time::HiRes::sleep(0.01);
	}
}

# A new directory that goes with the object.
sub temp_dir {
	my $dir = File::Temp->newdir('abx-test-XXXXXX', TMPDIR => 1);

	chmod 0755, "$dir";
	return $dir;
}

# A port that was free a moment ago.
sub free_port {
	my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1, ReuseAddr => 1) or die "no port: $!";

	return $socket->sockport;
}

sub slurp {
	my ($path) = @_;

	open my $in, '<:raw', $path or return undef;
	local $/;
	my $text = <$in>;
	return defined $text ? $text : '';
}

sub spew {
	my ($path, $text, $mode) = @_;

	open my $out, '>:raw', $path or die "$path: $!";
	print $out $text;
	close $out or die "$path: $!";
	chmod $mode, $path if defined $mode;
}

sub decode_json {
	my ($text) = @_;

	return eval { $JSON->decode($text) };
}

sub encode_json {
	my ($value) = @_;

	return $JSON->encode($value);
}

# Pids of the processes that have this parent, zombies left out.
sub children_of {
	my ($parent) = @_;
	my @pids;

	for my $stat (glob '/proc/[0-9]*/stat') {
		my $text = slurp($stat) or next;
		my ($pid, $state, $ppid) = $text =~ /\A(\d+) \(.*\) (\S) (\d+)/s or next;
		push @pids, $pid if $ppid == $parent && $state ne 'Z';
	}
	return @pids;
}

sub descendants_of {
	my ($pid) = @_;

	return map { ($_, descendants_of($_)) } children_of($pid);
}

# Whether there is such a process, a zombie not counted.
sub is_alive {
	my ($pid) = @_;
	my $text = slurp("/proc/$pid/stat") or return 0;

	return $text =~ /\A\d+ \(.*\) [^ZX] /s ? 1 : 0;
}

sub program_name {
	my ($pid) = @_;
	my $name = slurp("/proc/$pid/comm");

	return '' unless defined $name;
	chomp $name;
	return $name;
}

# ---- the server

# The environment of an abxd: nothing that the caller's holds of ABX_*, directories of its own, and what the test gives (undef: unset).
sub environment {
	my ($self, $given) = @_;
	my %env = map { $_ => $ENV{$_} } grep { !/\AABX_/ } keys %ENV;

	$env{ABX_RUN_DIR} = $self->{run};
	$env{ABX_SERVER_BASE_DIR} = $self->{base};
	$env{ABX_SPOOL_DIR} = $self->{spool};
	$env{ABX_COMMANDS_DIR} = $self->{commands};
	$env{ABX_SERVER_HOST} = '127.0.0.1';
	$env{ABX_PTY_PORT} = free_port();
	for my $name (keys %{ $given || {} }) {
		if (defined $given->{$name}) {
			$env{$name} = $given->{$name};
		} else {
			delete $env{$name};
		}
	}
	return \%env;
}

# Copies of the programs where every user can reach them.
sub public_programs {
	my $dir = temp_dir();

	for my $path (bin_dir() . '/abxd', glob bin_dir() . '/abx-*') {
		my ($name) = $path =~ m{([^/]+)\z};
		next if -d $path || !-x _;
		File::Copy::copy($path, "$dir/$name") or die "$name: $!";
		chmod 0755, "$dir/$name";
	}
	return $dir;
}

# An object with directories, and no server yet. Takes the arguments of start().
sub prepare {
	my ($class, %arg) = @_;
	my $dir = temp_dir();

	$arg{bin} ||= public_programs() if $arg{ordinary} && $> == 0 && !$arg{command};
	my $self = bless { dir => $dir, owner => $$, token => $arg{token}, command => $arg{command}, bin => $arg{bin} || bin_dir(), run => "$dir/run",
			   base => "$dir/base", spool => "$dir/spool", commands => "$dir/commands.d", log => "$dir/log",
			   prefix => '' }, $class;

	mkdir $self->{$_} or die "$self->{$_}: $!" for qw(base spool commands);
	if ($arg{ordinary} && $> == 0) {
		my ($uid, $gid) = (getpwnam 'nobody')[2, 3];
		$self->{ids} = [$uid, $gid];
		chown $uid, $gid, $dir, map { $self->{$_} } qw(base spool commands);
	}
	$self->{env} = $self->environment($arg{env});
	$self->{prefix} = $self->{env}{ABX_MOUNT_PREFIX} if $self->{env}{ABX_MOUNT_PREFIX};
	return $self;
}

# Start abxd and return at once; its standard output and error go to files of these names.
sub spawn {
	my ($self, $out, $err, @args) = @_;
	my $pid = fork();

	die "fork: $!" unless defined $pid;
	return $pid if $pid;
	%ENV = %{ $self->{env} };
	open STDIN, '<', '/dev/null';
	open STDOUT, '>', $out or POSIX::_exit(126);
	open STDERR, '>>', $err or POSIX::_exit(126);
	if ($self->{ids}) {
		my ($uid, $gid) = @{ $self->{ids} };
		$) = "$gid $gid";
		POSIX::setgid($gid);
		POSIX::setuid($uid);
	}
	my $program = $self->{command} || "$self->{bin}/abxd";
	{ no warnings; exec { $program } $program, @args; }
	POSIX::_exit(127);
}

# Run abxd to its end: for starts that are to fail, or that return. Gives exit status, standard output and standard error.
sub run_abxd {
	my ($self, @args) = @_;
	my $pid = $self->spawn("$self->{dir}/out", "$self->{dir}/err", @args);
	my $ended = wait_for(sub { waitpid($pid, WNOHANG) == $pid });
	my $status = $ended ? $? : undef;

	kill 'KILL', $pid unless $ended;
	my ($out, $err) = (slurp("$self->{dir}/out"), slurp("$self->{dir}/err"));
	unlink "$self->{dir}/out", "$self->{dir}/err";
	return (defined $status && !($status & 127) ? $status >> 8 : undef, $out, $err);
}

# Start a server and wait until it is ready. Dies when it is not.
#   env       settings, on top of the ones above
#   token     sent with each request
#   args      further arguments of abxd
#   bin       where the programs are
#   command   what to start instead of abxd, with the same arguments; it becomes abxd
#   ordinary  true: not as root, but as an ordinary user
sub start {
	my ($class, %arg) = @_;
	my $self = $class->prepare(%arg);

	return $self->launch(@{ $arg{args} || [] });
}

# Start what prepare() has laid out.
sub launch {
	my ($self, @args) = @_;
	my $out = "$self->{dir}/ready";
	my $pid = $self->{pid} = $self->spawn($out, $self->{log}, '--foreground', '--port', '0', @args);
	my $ready = wait_for(sub {
		my $text = slurp($out);
		return $1 if defined $text && $text =~ /\A(.+)\n/;
		return 'ended' if waitpid($pid, WNOHANG) == $pid;
		return undef;
	});

	if (!$ready || $ready eq 'ended') {
		delete $self->{pid} if $ready;
		die "abxd did not start: " . (slurp($self->{log}) || '(nothing on standard error)');
	}
	$self->{ready} = $ready;
	$self->{port} = $1 if $ready =~ m{http://\S+:(\d+)};
	return $self;
}

sub pid  { return $_[0]{pid} }
sub port { return $_[0]{port} }
sub base { return $_[0]{base} }
sub run  { return $_[0]{run} }
sub dir  { return "$_[0]{dir}" }

sub log_text {
	my ($self) = @_;

	return slurp($self->{log});
}

sub url {
	my ($self, $path) = @_;

	return "http://127.0.0.1:$self->{port}$self->{prefix}$path";
}

# The pids of a group's responders: more than one while an old one drains.
sub responders {
	my ($self, $group) = @_;
	my $name = "abx-$group";

	$name =~ tr/_/-/;
	return grep { program_name($_) eq substr($name, 0, 15) } children_of($self->{pid});
}

# One of them, or undef.
sub responder {
	my ($self, $group) = @_;
	my ($pid) = $self->responders($group);

	return $pid;
}

sub lighttpd {
	my ($self) = @_;
	my ($pid) = grep { program_name($_) eq 'lighttpd' } children_of($self->{pid});

	return $pid;
}

# End it. Returns abxd's exit status, or undef when it had to be killed. A report of a sanitizer fails the test.
sub stop {
	my ($self) = @_;
	my $pid = delete $self->{pid} or return undef;
	my $status;

	kill 'TERM', $pid;
	if (wait_for(sub { waitpid($pid, WNOHANG) == $pid })) {
		$status = $? & 127 ? undef : $? >> 8;
	} else {
		kill 'KILL', $pid;
		waitpid $pid, 0;
	}
	my $log = $self->log_text;
	if (defined $log && $log =~ /^.*(?:ERROR: \w+Sanitizer|runtime error:)/m) {
		Test::More::fail('no report of a sanitizer');
		Test::More::diag($log);
	}
	return $status;
}

sub DESTROY {
	my ($self) = @_;

	local ($?, $!, $@);
	$self->stop if $self->{owner} == $$;
}

# ---- requests

# One request. Options: headers (a hash), content (bytes) or json (a value); no_token leaves the token out. Returns a hash: status,
# headers (lower-case names), content, and json where the content is JSON.
sub request {
	my ($self, $method, $path, %option) = @_;
	my %headers = %{ $option{headers} || {} };
	my $content = exists $option{json} ? encode_json($option{json}) : $option{content};

	# HTTP::Tiny would call it application/octet-stream, which some endpoints take as raw bytes.
	$headers{'Content-Type'} ||= 'application/json' if defined $content;
	$headers{'X-Access-Token'} = $self->{token} if defined $self->{token} && !$option{no_token};
	$self->{http} ||= HTTP::Tiny->new(timeout => $PATIENCE);
	my $answer = $self->{http}->request($method, $self->url($path),
					    { headers => \%headers, defined $content ? (content => $content) : () });
	my %result = (status => $answer->{status}, headers => $answer->{headers}, content => $answer->{content});
	$result{json} = decode_json($result{content}) if length $result{content};
	return \%result;
}

sub get {
	my ($self, $path, %option) = @_;

	return $self->request('GET', $path, %option);
}

# The body: a reference is sent as JSON, a string as it is; undef sends none.
sub post {
	my ($self, $path, $body, %option) = @_;

	return $self->request('POST', $path, ref $body ? (json => $body) : defined $body ? (content => $body) : (), %option);
}

sub delete {
	my ($self, $path, $body, %option) = @_;

	return $self->request('DELETE', $path, ref $body ? (json => $body) : defined $body ? (content => $body) : (), %option);
}

# A connection to the server, to speak HTTP by hand.
sub connect {
	my ($self) = @_;

	return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $self->{port}, Timeout => $PATIENCE)
		|| die "connect: $!";
}

# Read from a connection until the function, given all that has come so far, is true, or the other end closes. Without a function: until it closes.
sub read_until {
	my ($socket, $enough) = @_;
	my ($got, $end) = ('', Time::HiRes::time() + $PATIENCE);

	until ($enough && $enough->($got)) {
		my $ready = '';
		vec($ready, fileno($socket), 1) = 1;
		my $left = $end - Time::HiRes::time();
		last if $left <= 0 || select($ready, undef, undef, $left) <= 0;
		last unless sysread($socket, $got, 65536, length $got);
	}
	return $got;
}

# Send bytes, and return all that comes until the server closes the connection.
sub raw {
	my ($self, $bytes) = @_;
	my $socket = $self->connect;

	local $SIG{PIPE} = 'IGNORE';
	syswrite $socket, $bytes;
	return read_until($socket);
}

# Split a raw answer: the same hash as request() gives, of the first response in it.
sub parse_response {
	my ($bytes) = @_;
	my ($head, $content) = split /\r\n\r\n/, $bytes, 2;
	my ($line, @lines) = split /\r\n/, defined $head ? $head : '';
	my %headers = map { /\A([^:]+):\s*(.*)\z/s ? (lc $1, $2) : () } @lines;
	my ($status) = ($line || '') =~ m{\AHTTP/1\.[01] (\d{3})};

	$content = '' unless defined $content;
	if (($headers{'transfer-encoding'} || '') eq 'chunked') {
		my $whole = '';
		while ($content =~ s/\A([0-9a-fA-F]+)[^\r\n]*\r\n//) {
			my $size = hex $1 or last;
			$whole .= substr $content, 0, $size, '';
			$content =~ s/\A\r\n//;
		}
		$content = $whole;
	} elsif (defined $headers{'content-length'}) {
		$content = substr $content, 0, $headers{'content-length'};
	}
	return { status => $status, headers => \%headers, content => $content, json => scalar decode_json($content) };
}

1;
