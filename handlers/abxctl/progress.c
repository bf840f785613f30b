#include "handlers/abxctl/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"

#define PATIENCE_MS 2000
#define STEP_MS 200

/* What stands beside the bar: "100% [] 1023.9 MiB, 1023.9 MiB/s, 99:59:59 left". */
#define WORDS 52
#define BAR_MAX 60

static void scale(double bytes, char *out, size_t size)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	size_t i = 0;

	while (bytes >= 1024 && i < 4) {
		bytes /= 1024;
		i++;
	}
	snprintf(out, size, i ? "%.1f %s" : "%.0f %s", bytes, units[i]);
}

static void print_time_left(double seconds)
{
	long left = seconds < 359999 ? (long)(seconds + 0.5) : 359999;

	if (left >= 3600)
		fprintf(stderr, ", %ld:%02ld:%02ld left", left / 3600, left / 60 % 60, left % 60);
	else
		fprintf(stderr, ", %ld:%02ld left", left / 60, left % 60);
}

static void print_bar(int64_t done, int64_t total)
{
	struct winsize size = { .ws_col = 0 };
	char bar[BAR_MAX + 1];

	ioctl(STDERR_FILENO, TIOCGWINSZ, &size);
	int columns = size.ws_col > 0 ? size.ws_col : 80;
	int width = columns - WORDS < BAR_MAX ? columns - WORDS : BAR_MAX;
	fprintf(stderr, "%3d%% ", (int)(done * 100.0 / (double)total));
	if (width < 5)
		return;
	int full = (int)((double)done * width / (double)total);
	memset(bar, '#', (size_t)full);
	memset(bar + full, ' ', (size_t)(width - full));
	bar[width] = '\0';
	fprintf(stderr, "[%s] ", bar);
}

void progress_show(struct progress *progress, int64_t done, int64_t total)
{
	int64_t now = abx_clock_ms();
	char count[32], rate[32];

	if (!progress->begin_ms) {
		progress->begin_ms = now;
		progress->next_ms = isatty(STDERR_FILENO) ? now + PATIENCE_MS : INT64_MAX;
	}
	if (now < progress->next_ms || done <= 0)
		return;
	progress->next_ms = now + STEP_MS;
	double per_second = (double)done * 1000 / (double)(now - progress->begin_ms);
	scale((double)done, count, sizeof(count));
	scale(per_second, rate, sizeof(rate));
	fputc('\r', stderr);
	if (total > 0 && done <= total)
		print_bar(done, total);
	fprintf(stderr, "%s, %s/s", count, rate);
	if (total > done)
		print_time_left((double)(total - done) / per_second);
	fputs("\033[K", stderr);
	fflush(stderr);
	progress->shown = true;
}

void progress_end(struct progress *progress)
{
	if (!progress->shown)
		return;
	fputs("\r\033[K", stderr);
	fflush(stderr);
	progress->shown = false;
}
