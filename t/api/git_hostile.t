#!/usr/bin/perl
# Repositories that were made to harm: git_status and git_diff run nothing that is in them, and read nothing outside of the base directory.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../lib";

use AbxServer;
use GitRepo;
use Test::More;

plan skip_all => 'git is not installed' unless grep { -x "$_/git" } split /:/, $ENV{PATH};

my $home = AbxServer::temp_dir();
my $server = AbxServer->start(env => { ABX_SERVER_ENABLED_GROUPS => 'dev_tools', HOME => "$home" });
my $base = $server->base;
my $outside = $server->dir . '/outside';
my $canary = $server->dir . '/canary';
my $program = $server->dir . '/program';
my $n = 0;

mkdir $outside or die;
# Leaves a mark, and behaves as a filter that changes nothing.
GitRepo::write_file($program, <<"END", 0755);
#!/bin/sh
echo "\$0 \$*" >> '$canary'
case "\$*" in
*upload-pack*) exit 1 ;;
*) cat ;;
esac
END

# A repository with a change in the index, one in the working tree, and one file whose time alone is new.
sub new_repo {
	my ($name) = @_;
	my $dir = GitRepo::make("$base/" . ($name || 'r' . ++$n), 'a.txt' => "one\n", 'b.txt' => "two\n", 'c.txt' => "three\n");

	GitRepo::append_file("$dir/a.txt", "more\n");
	GitRepo::git($dir, 'add', 'a.txt');
	touch_files($dir);
	return $dir;
}

sub touch_files {
	my ($dir) = @_;

	GitRepo::append_file("$dir/b.txt", "more\n");
	utime 1, 1, "$dir/c.txt";
}

# Call everything there is on the repository. Returns the answers.
sub call_all {
	my ($dir) = @_;

	return ($server->get("/git/status?path=$dir"), $server->get("/git/diff?path=$dir"), $server->get("/git/diff?path=$dir&staged=1"));
}

sub canary_sang {
	my $sang = -e $canary;

	unlink $canary;
	return $sang;
}

# Nothing runs when we look at it, and, so that this means something, git run as usual does run it (`live`: the commands that do).
sub runs_nothing {
	my ($what, $dir, $live, $status) = @_;

	subtest $what => sub {
		unlink $canary;
		my @answers = call_all($dir);
		ok !canary_sang(), 'nothing has run';
		is $_->{status}, $status || 200, 'the answer' or diag $_->{content} for @answers;
		is_deeply [map { $_->{status} } @{ $answers[0]{json}{files} }], ['modified', 'modified'], 'what has changed is told'
			unless $status;
		like $answers[1]{json}{diff}, qr/\+more/, 'and shown' unless $status;
		for my $command (@$live) {
			touch_files($dir);
			GitRepo::try_git($dir, @$command);
			ok canary_sang(), "and it would have: git @$command";
		}
	};
}

sub config {
	my ($dir, @pairs) = @_;

	while (my ($key, $value) = splice @pairs, 0, 2) {
		GitRepo::git($dir, 'config', $key, $value);
	}
	return $dir;
}

my @status = (['status']);
my @diff = (['diff']);
my @both = (['status'], ['diff']);

runs_nothing('core.fsmonitor', config(new_repo(), 'core.fsmonitor' => $program), \@both);

for my $kind (qw(clean process)) {
	my $dir = config(new_repo(), "filter.evil.$kind" => $program, 'filter.evil.required' => 'true');
	GitRepo::write_file("$dir/.git/info/attributes", "* filter=evil\n");
	runs_nothing("filter.<driver>.$kind", $dir, \@both);
}

runs_nothing('diff.external', config(new_repo(), 'diff.external' => $program), \@diff);

for my $kind (qw(command textconv)) {
	my $dir = config(new_repo(), "diff.evil.$kind" => $program);
	GitRepo::write_file("$dir/.git/info/attributes", "* diff=evil\n");
	runs_nothing("diff.<driver>.$kind", $dir, \@diff);
}

{
	my $dir = new_repo();
	mkdir "$dir/.git/hooks";
	for my $hook (qw(post-index-change pre-auto-gc reference-transaction fsmonitor-watchman)) {
		GitRepo::write_file("$dir/.git/hooks/$hook", "#!/bin/sh\nexec '$program'\n", 0755);
	}
	runs_nothing('hooks', $dir, \@status);
}

{
	my $dir = config(new_repo(), 'core.hooksPath' => "$base/hooks");
	mkdir "$base/hooks";
	GitRepo::write_file("$base/hooks/post-index-change", "#!/bin/sh\nexec '$program'\n", 0755);
	runs_nothing('core.hooksPath', $dir, \@status);
}

{
	GitRepo::write_file("$outside/included", "[core]\n\tfsmonitor = $program\n");
	runs_nothing('include.path', config(new_repo(), 'include.path' => "$outside/included"), \@both);
	runs_nothing('includeIf', config(new_repo(), 'includeIf.gitdir:/**.path' => "$outside/included"), \@both);
}

{
	my $dir = config(new_repo(), 'extensions.worktreeConfig' => 'true');
	GitRepo::write_file("$dir/.git/config.worktree", "[core]\n\tfsmonitor = $program\n");
	runs_nothing('config.worktree', $dir, \@both);
}

# Programs that git starts for other work: named all the same.
runs_nothing('pagers, editors, helpers, aliases', config(new_repo(), 'core.pager' => $program, 'pager.status' => $program,
	'pager.diff' => $program, 'core.editor' => $program, 'sequence.editor' => $program, 'credential.helper' => "!$program",
	'core.askPass' => $program, 'core.sshCommand' => $program, 'core.gitProxy' => $program, 'gpg.program' => $program,
	'core.alternateRefsCommand' => $program, 'alias.status' => "!$program", 'alias.diff' => "!$program",
	'interactive.diffFilter' => $program, 'uploadpack.packObjectsHook' => $program, 'diff.tool' => 'evil',
	'difftool.evil.cmd' => $program, 'merge.evil.driver' => $program), []);

# A file of the index is missing from the objects, and a remote promises it.
for my $remote (["ext::$program %S", 'ext::'], ['ssh://host/path', 'core.sshCommand']) {
	my $dir = new_repo();
	my ($blob) = GitRepo::git($dir, 'rev-parse', ':b.txt') =~ /\A(\w+)/;
	unlink "$dir/.git/objects/" . substr($blob, 0, 2) . '/' . substr($blob, 2) or die;
	config($dir, 'core.repositoryFormatVersion' => 1, 'extensions.partialClone' => 'origin', 'remote.origin.url' => $remote->[0],
	       'remote.origin.promisor' => 'true', 'remote.origin.fetch' => '+refs/heads/*:refs/remotes/origin/*',
	       'protocol.allow' => 'always', 'protocol.ext.allow' => 'always', 'core.sshCommand' => $program);
	subtest "a promised object: $remote->[1]" => sub {
		unlink $canary;
		my ($status, $diff, $staged) = call_all($dir);
		ok !canary_sang(), 'nothing has run';
		is $status->{status}, 200, 'the status needs no object';
		is $diff->{status}, 400, 'the diff is refused';
		is $diff->{json}{type}, 'GitError', 'as an error of git';
		GitRepo::try_git($dir, 'diff');
		ok canary_sang(), 'and it would have run: git diff';
	};
}

# A submodule with a configuration of its own, of which git status starts another one.
{
	my $module = new_repo('module');
	my $dir = new_repo();
	GitRepo::git($dir, 'submodule', '--quiet', 'add', "$base/module", 'sub');
	GitRepo::git($dir, 'commit', '-q', '-m', 'With a submodule');
	GitRepo::append_file("$dir/sub/a.txt", "more\n");
	GitRepo::git("$dir/sub", 'add', 'a.txt');
	touch_files("$dir/sub");
	config("$dir/sub", 'core.fsmonitor' => $program, 'filter.evil.clean' => $program, 'diff.external' => $program);
	GitRepo::append_file("$dir/.git/modules/sub/info/attributes", "* filter=evil\n");
	config($dir, 'status.submoduleSummary' => 'true', 'diff.submodule' => 'diff', 'submodule.recurse' => 'true',
	       'submodule.sub.update' => "!$program");
	GitRepo::append_file("$dir/a.txt", "more\n");
	subtest 'a submodule' => sub {
		unlink $canary;
		my ($status, $diff, $staged) = call_all($dir);
		ok !canary_sang(), 'nothing has run';
		is $_->{status}, 200, 'the answer' or diag $_->{content} for $status, $diff, $staged;
		for my $command (['status'], ['diff']) {
			GitRepo::try_git($dir, @$command);
			ok canary_sang(), "and it would have: git @$command";
		}
	};
	runs_nothing('the submodule itself', "$dir/sub", \@both);
}

# A directory that looks like a repository without a working tree, in one that is harmless.
{
	my $dir = new_repo();
	GitRepo::git($dir, 'init', '-q', '--bare', "$dir/bare");
	config("$dir/bare", 'core.bare' => 'false', 'core.worktree' => '.', 'core.fsmonitor' => $program);
	subtest 'a hidden bare repository' => sub {
		unlink $canary;
		call_all("$dir/bare");
		ok !canary_sang(), 'nothing has run';
		GitRepo::try_git("$dir/bare", 'status');
		ok canary_sang(), 'and it would have: git status';
	};
}

# ---- not the repository's, but callers'

subtest 'settings of the user' => sub {
	my $dir = new_repo();
	GitRepo::write_file("$home/.gitconfig", "[core]\n\tfsmonitor = $program\n[diff]\n\texternal = $program\n");
	mkdir "$home/.config";
	mkdir "$home/.config/git";
	GitRepo::write_file("$home/.config/git/config", "[core]\n\tfsmonitor = $program\n");
	unlink $canary;
	is $_->{status}, 200, 'the answer' for call_all($dir);
	ok !canary_sang(), 'nothing has run';
	GitRepo::run($dir, { may_fail => 1, env => { HOME => "$home", GIT_CONFIG_GLOBAL => "$home/.gitconfig" } }, 'git', 'status');
	ok canary_sang(), 'and it would have: git status';
};

subtest 'variables that POST /env has set' => sub {
	my $dir = new_repo();
	my %vars = (GIT_EXTERNAL_DIFF => $program, GIT_PAGER => $program, GIT_SSH_COMMAND => $program, GIT_EXEC_PATH => $outside,
		    GIT_CONFIG_COUNT => 1, GIT_CONFIG_KEY_0 => 'core.fsmonitor', GIT_CONFIG_VALUE_0 => $program, GIT_DIR => $outside,
		    GIT_WORK_TREE => $outside, GIT_INDEX_FILE => "$outside/index", GIT_TRACE => "$outside/trace",
		    GIT_CONFIG_PARAMETERS => "'core.fsmonitor'='$program'", GIT_ALTERNATE_OBJECT_DIRECTORIES => $outside);
	GitRepo::write_file("$outside/git-status", "#!/bin/sh\nexec '$program'\n", 0755);
	is $server->post('/env', { vars => \%vars })->{status}, 200, 'they are set';
	unlink $canary;
	is $_->{status}, 200, 'the answer' or diag $_->{content} for call_all($dir);
	ok !canary_sang(), 'nothing has run';
	ok !-e "$outside/trace", 'nothing was written';
	like $server->post('/shell', { command => 'env' })->{json}{stdout}, qr/^GIT_EXTERNAL_DIFF=/m, 'other children have the variables';
};

subtest 'a file that reads like an option' => sub {
	my $dir = new_repo();
	for my $file ("--output=$canary", '--no-index', "--ext-diff", '-O/etc/passwd') {
		my $answer = $server->get("/git/diff?path=$dir&file=$file");
		is $answer->{status}, 200, "$file is a path";
		is $answer->{json}{diff}, '', 'that nothing matches';
	}
	ok !canary_sang(), 'nothing was written';
	my $answer = $server->get("/git/diff?path=$dir&file=/etc/passwd");
	is $answer->{status}, 400, 'a file outside of the repository';
	unlike $answer->{content}, qr/root:/, 'is not shown';
};

# ---- what leads out

my $secret = GitRepo::make("$outside/repo", 'secret.txt' => "the secret\n");
GitRepo::append_file("$secret/secret.txt", "the other secret\n");

sub is_refused {
	my ($what, $dir) = @_;

	subtest $what => sub {
		for my $answer (call_all($dir)) {
			is $answer->{status}, 403, 'it is refused' or diag $answer->{content};
			is $answer->{json}{code}, 'path_not_allowed', 'the code';
			unlike $answer->{content}, qr/secret/, 'and nothing shown';
		}
	};
}

sub shows_nothing {
	my ($what, $dir) = @_;

	subtest $what => sub {
		for my $answer (call_all($dir)) {
			unlike $answer->{content}, qr/secret/, 'nothing is shown' or diag $answer->{content};
		}
	};
}

{
	my $dir = "$base/r" . ++$n;
	mkdir $dir;
	GitRepo::write_file("$dir/.git", "gitdir: $secret/.git\n");
	is_refused('a .git file that names a repository outside', $dir);
	GitRepo::write_file("$dir/.git", "gitdir: ../../outside/repo/.git\n");
	is_refused('the same by a relative path', $dir);
}

{
	my $dir = "$base/r" . ++$n;
	mkdir $dir;
	symlink "$secret/.git", "$dir/.git";
	is_refused('.git is a link that leads out', $dir);
}

for my $part (qw(index HEAD)) {
	my $dir = new_repo();
	unlink "$dir/.git/$part";
	symlink "$secret/.git/$part", "$dir/.git/$part";
	is_refused("$part is a link that leads out", $dir);
}

for my $part (qw(objects refs)) {
	my $dir = new_repo();
	rename "$dir/.git/$part", "$dir/.git/$part.old";
	symlink "$secret/.git/$part", "$dir/.git/$part";
	is_refused("$part is a link that leads out", $dir);
}

for my $part (qw(config packed-refs info/exclude info/attributes)) {
	my $dir = new_repo();
	unlink "$dir/.git/$part";
	symlink "$secret/secret.txt", "$dir/.git/$part";
	is_refused("$part is a link that leads out", $dir);
}

{
	my $dir = new_repo();
	GitRepo::write_file("$dir/.git/objects/info/alternates", "$secret/.git/objects\n");
	is_refused('alternates outside', $dir);
	my $between = new_repo();
	GitRepo::write_file("$between/.git/objects/info/alternates", "$secret/.git/objects\n");
	GitRepo::write_file("$dir/.git/objects/info/alternates", "# comment\n../../../" . ($between =~ s{.*/}{}r) . "/.git/objects\n");
	is_refused('alternates of alternates', $dir);
	GitRepo::write_file("$dir/.git/objects/info/alternates", "\"$secret/.git/object\\163\"\n");
	shows_nothing('a quoted alternate', $dir);
}

{
	my $dir = new_repo();
	GitRepo::write_file("$dir/.git/commondir", "$secret/.git\n");
	is_refused('a common directory outside', $dir);
}

{
	my $dir = new_repo();
	GitRepo::git($dir, 'update-index', '--split-index');
	my ($shared) = glob "$dir/.git/sharedindex.*";
	GitRepo::git($secret, 'update-index', '--split-index');
	my ($theirs) = glob "$secret/.git/sharedindex.*";
	unlink $shared;
	symlink $theirs, $shared;
	is_refused('a shared index outside', $dir);
}

{
	# Of a file that the index knows, git diff shows what is in the place that core.worktree names.
	my $dir = GitRepo::make("$base/r" . ++$n, 'secret.txt' => "\n");
	config($dir, 'core.worktree' => $secret);
	like GitRepo::git($dir, 'diff'), qr/the other secret/, 'git would show what is outside';
	shows_nothing('core.worktree outside', $dir);
}

{
	my $dir = new_repo();
	symlink $secret, "$dir/link";
	shows_nothing('a link in the working tree', $dir);
	unlink "$dir/link";
	mkdir "$dir/link";
	GitRepo::write_file("$dir/link/secret.txt", "\n");
	GitRepo::git($dir, 'add', 'link');
	GitRepo::git($dir, 'commit', '-q', '-m', 'More');
	unlink "$dir/link/secret.txt";
	rmdir "$dir/link";
	symlink $secret, "$dir/link";
	my ($status, $diff) = call_all($dir);
	unlike $diff->{content}, qr/the (?:other )?secret/, 'a directory that became a link is not looked into';
}

# ---- what must work all the same

subtest 'links that stay inside' => sub {
	my $dir = new_repo();
	rename "$dir/.git", "$base/real";
	symlink "$base/real", "$dir/.git";
	is $server->get("/git/status?path=$dir")->{status}, 200, '.git is a link';
	unlink "$dir/.git";
	GitRepo::write_file("$dir/.git", "gitdir: ../real\n");
	is $server->get("/git/status?path=$dir")->{status}, 200, '.git is a file';
	GitRepo::git($base, 'clone', '-q', '--shared', $dir, "$base/shared");
	GitRepo::append_file("$base/shared/a.txt", "x\n");
	is $server->get("/git/diff?path=$base/shared")->{json}{stats}{insertions}, 1, 'alternates inside';
};

is_deeply [glob $server->run . '/work-*'], [], 'no working directory is left';
is $server->stop, 0, 'the server ends well';

done_testing;
