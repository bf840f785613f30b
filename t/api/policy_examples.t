# The worked examples of abx-policy(5), and abxctl policy.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use Test::More;

my $dir = AbxServer::temp_dir();
my $abxctl = AbxServer::bin_dir() . '/abxctl';
my $manual = AbxServer::slurp("$FindBin::Bin/../../packaging/man/abx-policy.5");

# Run abxctl policy. Gives exit status, standard output and standard error.
sub policy {
	my ($pid, @args) = (undef, @_);

	$pid = fork // die "fork: $!";
	if ($pid == 0) {
		delete @ENV{grep { /\AABX_/ } keys %ENV};
		open STDOUT, '>', "$dir/out" or POSIX::_exit(126);
		open STDERR, '>', "$dir/err" or POSIX::_exit(126);
		exec { $abxctl } 'abxctl', 'policy', @args or POSIX::_exit(127);
	}
	waitpid $pid, 0;
	return ($? >> 8, AbxServer::slurp("$dir/out"), AbxServer::slurp("$dir/err"));
}

# A line of the table: state, rule, scopes and limits of an endpoint.
sub row {
	my ($table, $id) = @_;
	my ($line) = $table =~ /^(\Q$id\E .*)$/m;

	return $line ? (split ' ', $line, 5)[1 .. 4] : ();
}

my %examples = $manual =~ /^\.\\" example (\w+)\n(.*?)^\.\\" end$/msg;
is_deeply [sort keys %examples], [qw(interpreter reviewer runner two)], 'the manual has its four examples';

my %table;
for my $name (sort keys %examples) {
	# troff's escapes: none but the hyphen is used in the examples.
	unlike $examples{$name}, qr/\\/, "$name: written as it is";
	AbxServer::spew("$dir/$name.yaml", $examples{$name});
	my ($status, $out, $err) = policy('check', "$dir/$name.yaml");
	is $status, 0, "$name: is valid";
	is $err, '', "$name: without a warning";
	$table{$name} = $out;
}

# What each is there for.
my @cases = (
	['reviewer', 'files_stat', 'on', 'preset:read-only'],
	['reviewer', 'upload', 'off', 'preset:read-only'],
	['reviewer', 'shell', 'off', 'preset:read-only'],
	['reviewer', 'env_get', 'off', 'policy:endpoints.env_get'],
	['reviewer', 'git_diff', 'on', 'preset:read-only'],
	['runner', 'shell', 'on', 'policy:endpoints.shell'],
	['runner', 'commands_run', 'off', 'preset:locked'],
	['runner', 'files_delete', 'off', 'preset:locked'],
	['interpreter', 'code_run', 'on', 'policy:groups.dev_tools'],
	['interpreter', 'shell', 'off', 'preset:files-only'],
	['interpreter', 'git_diff', 'off', 'policy:endpoints.git_diff'],
	['two', 'shell', 'on', 'default:on:process', 'work'],
	['two', 'process_signal', 'on', 'default:on:process', 'watch:signal'],
	['two', 'env_set', 'off', 'policy:endpoints.env_set'],
);
for my $case (@cases) {
	my ($name, $id, @want) = @$case;
	my @row = row($table{$name}, $id);
	is_deeply [@row[0 .. $#want]], \@want, "$name: $id";
}
like +(row($table{runner}, 'shell'))[3], qr/timeout_seconds 900, max_output_bytes 4194304, max_concurrent 4/, 'runner: the limits';
like $table{two}, qr/^identity agent: work$/m, 'two: the one';
like $table{two}, qr/^identity person: watch:\*$/m, 'two: the other';

sub explains {
	my ($name, $id, $value, $status, $like) = @_;
	my ($got, $out, $err) = policy('explain', "$dir/$name.yaml", $id, defined $value ? $value : ());

	is $got, $status, "$name: explain $id" . (defined $value ? " '$value'" : '');
	like $out . $err, $like, 'says so';
}

explains('runner', 'shell', 'make all', 0, qr/^shell is on: policy:endpoints\.shell\n.*preset:locked\n.*<- decides\n.*the command 'make all' is allowed\n\z/s);
explains('runner', 'shell', 'rm x', 1, qr/the command 'rm x' is refused: .* \(policy:endpoints\.shell\)/);
explains('runner', 'shell', 'git push origin', 1, qr/is refused/);
explains('runner', 'upload', '/srv/ci/x.so', 1, qr/the path '\/srv\/ci\/x\.so' is refused: .*extension/);
explains('runner', 'upload', '/etc/x', 1, qr/is refused/);
explains('runner', 'upload', 'x.c', 0, qr/is allowed/);
explains('reviewer', 'download', '/home/user/a/.env', 1, qr/is refused.*policy:endpoints\.download/);
explains('reviewer', 'download', '/home/user/a/env', 0, qr/is allowed/);
explains('interpreter', 'code_run', 'node', 1, qr/the language 'node' is refused/);
explains('interpreter', 'code_run', undef, 0, qr/code_run is on: policy:groups\.dev_tools\n  off  default:opt-in:dev_tools\n  off  preset:files-only\n  on   policy:groups\.dev_tools  <- decides/);
explains('reviewer', 'upload', 'x', 1, qr/^upload is off: preset:read-only\n.*the path 'x' is refused: the endpoint is off\n\z/s);
explains('two', 'health', undef, 0, qr/^health is on: core:always-on/);
explains('two', 'heatlh', undef, 2, qr/unknown endpoint 'heatlh': did you mean 'health'\?/);
explains('two', 'health', 'x', 2, qr/the policy has no values for 'health'/);

AbxServer::spew("$dir/bad.yaml", "version: 1\nendpoints:\n  shel: {}\n");
my ($status, $out, $err) = policy('check', "$dir/bad.yaml");
is $status, 1, 'check: a bad document';
is $out, '', 'nothing on standard output';
is $err, "abxctl: $dir/bad.yaml:3: endpoints.shel: unknown endpoint 'shel': did you mean 'shell'?\n", 'what is wrong with it';
AbxServer::spew("$dir/warn.yaml", "endpoints:\n  upload: {commands: {deny: [x]}}\n");
($status, $out, $err) = policy('check', "$dir/warn.yaml");
is $status, 0, 'check: a document with a warning';
is $err, "warning: $dir/warn.yaml:2: endpoints.upload.commands: can have no effect on this endpoint\n", 'which goes to standard error';
is +(policy('check'))[0], 2, 'no file';
is +(policy('chekc', "$dir/warn.yaml"))[0], 2, 'no such thing';

done_testing;
