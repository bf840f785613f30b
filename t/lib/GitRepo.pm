# Repositories for tests of the git endpoints.
package GitRepo;

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Path qw(make_path);
use POSIX ();

# Run a program in a directory, with none of the caller's settings for git. Returns its standard output; dies when it fails, unless `may_fail` is set.
sub run {
	my ($dir, $option, @command) = @_;
	my $pid = open my $out, '-|';

	die "fork: $!" unless defined $pid;
	if (!$pid) {
		delete @ENV{grep { /\AGIT_/ } keys %ENV};
		%ENV = (%ENV, GIT_CONFIG_GLOBAL => '/dev/null', GIT_CONFIG_NOSYSTEM => 1, GIT_AUTHOR_NAME => 'A', LC_ALL => 'C',
			GIT_AUTHOR_EMAIL => 'a@example.org', GIT_COMMITTER_NAME => 'A', GIT_COMMITTER_EMAIL => 'a@example.org',
			%{ $option->{env} || {} });
		chdir $dir or POSIX::_exit(126);
		open STDIN, '<', '/dev/null';
		open STDERR, '>', '/dev/null' if $option->{may_fail};
		{ no warnings; exec { $command[0] } @command; }
		POSIX::_exit(127);
	}
	local $/;
	binmode $out;
	my $text = <$out>;
	close $out;
	die "@command: status $?" if $? && !$option->{may_fail};
	return defined $text ? $text : '';
}

sub git {
	my ($dir, @args) = @_;

	return run($dir, {}, 'git', '-c', 'protocol.file.allow=always', @args);
}

# As git(), and a failure is none.
sub try_git {
	my ($dir, @args) = @_;

	return run($dir, { may_fail => 1 }, 'git', @args);
}

sub write_file {
	my ($path, $text, $mode) = @_;

	open my $out, '>:raw', $path or die "$path: $!";
	print $out $text;
	close $out or die "$path: $!";
	chmod $mode, $path if defined $mode;
}

sub append_file {
	my ($path, $text) = @_;

	open my $out, '>>:raw', $path or die "$path: $!";
	print $out $text;
	close $out or die "$path: $!";
}

# A new repository with one commit of the files given (name => text).
sub make {
	my ($dir, %files) = @_;

	mkdir $dir or die "$dir: $!";
	git($dir, 'init', '-q', '-b', 'main');
	commit($dir, %files) if %files;
	return $dir;
}

sub commit {
	my ($dir, %files) = @_;

	for my $name (sort keys %files) {
		make_path(dirname("$dir/$name"));
		write_file("$dir/$name", $files{$name});
	}
	git($dir, 'add', '-A');
	git($dir, 'commit', '-q', '-m', 'A commit');
}

1;
