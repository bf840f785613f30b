# Servers with a policy document, and what tests of policies ask of them.
package AbxPolicy;

use strict;
use warnings;

use AbxServer;
use Exporter qw(import);
use Test::More;

our @EXPORT = qw(start_with write_policy reload refused check_of);

# Start a server whose document is the text, in which %BASE% and %DIR% stand for its base directory and the one above.
sub start_with {
	my ($text, %arg) = @_;
	my $server = AbxServer->prepare(%arg);

	$server->{policy} = "$server->{dir}/policy.yaml";
	$server->{env}{ABX_SERVER_POLICY} = $server->{policy};
	write_policy($server, $text);
	return $server->launch;
}

sub write_policy {
	my ($server, $text) = @_;

	$text =~ s/%BASE%/$server->{base}/g;
	$text =~ s/%DIR%/$server->{dir}/g;
	AbxServer::spew($server->{policy}, $text);
}

# Have it read its document again. Gives abxctl's exit status and all that it printed.
sub reload {
	my ($server) = @_;
	my $out = "$server->{dir}/reload.out";
	my $pid = fork // die "fork: $!";

	if ($pid == 0) {
		open STDOUT, '>', $out or POSIX::_exit(126);
		open STDERR, '>&', \*STDOUT;
		$ENV{ABX_RUN_DIR} = $server->{run};
		exec { "$server->{bin}/abxctl" } 'abxctl', 'reload' or POSIX::_exit(127);
	}
	waitpid $pid, 0;
	return ($? >> 8, AbxServer::slurp($out));
}

# Whether an answer is a refusal by the policy: status, code, and the rule (undef: none).
sub refused {
	my ($answer, $status, $code, $rule, $name) = @_;
	my $json = $answer->{json} || {};

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is_deeply [$answer->{status}, $json->{code}, $json->{rule}], [$status, $code, $rule], $name or diag $answer->{content};
}

# What /capabilities/check says: undef when allowed, else code and rule.
sub check_of {
	my ($server, $endpoint, %values) = @_;
	my $answer = $server->post('/capabilities/check', { endpoint => $endpoint, %values });

	return "status $answer->{status}" if $answer->{status} != 200;
	return $answer->{json}{allowed} ? undef : join ' ', grep { defined } @{ $answer->{json} }{qw(code rule)};
}

1;
