#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/tool.h"
#include "handlers/system/handlers.h"
#include "handlers/system/machine.h"

#define MIB 1048576.0
#define GIB 1073741824.0

/* It says a line at once; what does not is no Python. */
#define VERSION_SECONDS 5
#define VERSION_MAX     4096

/* The version of python3 on the server's PATH, in `text`; "" where there is none that says so. */
static int python_version(const struct abx_request *req, char text[64], struct abx_err *err)
{
	abx_auto_env struct abx_env env = { 0 };
	abx_auto_result struct abx_spawn_result result = ABX_SPAWN_RESULT_INIT;
	char *const argv[] = { "python3", "-V", NULL };
	struct abx_tool tool = {
		.argv = argv, .env = &env, .cwd_fd = -1, .timeout = VERSION_SECONDS, .max_output = VERSION_MAX
	};
	const char *version;

	text[0] = '\0';
	if (abx_env_init(&env) < 0)
		return abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
	if (abx_tool_run(req, &tool, &result, err) < 0)
		return err->kind == ABX_E_GONE || err->kind == ABX_E_UNAVAILABLE ? -1 : 0;
	version = strncmp(result.out.buf, "Python ", 7) == 0 && result.exit_code == 0 ? result.out.buf + 7 : "";
	strncat(text, version, strcspn(version, " \r\n") < 63 ? strcspn(version, " \r\n") : 0);
	return 0;
}

static void write_mb(struct abx_json_writer *jw, const char *key, int64_t kb)
{
	abx_jw_key(jw, key);
	if (kb < 0)
		abx_jw_null(jw);
	else
		abx_jw_int(jw, kb / 1024);
}

int h_system_info(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	struct system_memory memory;
	struct system_disk disk;
	struct utsname name;
	char version[64];

	uname(&name);
	system_memory_read(&memory);
	if (system_disk_read(&disk) < 0)
		return abx_err_errno(err, errno, "Cannot look at the file system of /");
	if (python_version(req, version, err) < 0)
		return -1;
	abx_jw_object(&jw);
	abx_jw_kstring(&jw, "os", name.sysname);
	abx_jw_kstring(&jw, "arch", name.machine);
	abx_jw_kint(&jw, "cpu_count", sysconf(_SC_NPROCESSORS_ONLN));
	write_mb(&jw, "memory_total_mb", memory.total_kb);
	write_mb(&jw, "memory_available_mb", memory.available_kb);
	abx_jw_krounded(&jw, "disk_total_gb", disk.total / GIB, 2);
	abx_jw_krounded(&jw, "disk_free_gb", disk.free / GIB, 2);
	abx_jw_kstring(&jw, "python_version", version[0] ? version : NULL);
	abx_jw_kstring(&jw, "hostname", name.nodename);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}

/* A figure that may not be known. */
static void write_known(struct abx_json_writer *jw, const char *key, bool known, double value)
{
	if (known) {
		abx_jw_krounded(jw, key, value, 2);
	} else {
		abx_jw_key(jw, key);
		abx_jw_null(jw);
	}
}

static void write_load(struct abx_json_writer *jw)
{
	double load[3] = { 0 };
	int n = getloadavg(load, 3);

	write_known(jw, "cpu_load_1m", n > 0, load[0]);
	write_known(jw, "cpu_load_5m", n > 1, load[1]);
	write_known(jw, "cpu_load_15m", n > 2, load[2]);
}

static void write_percent(struct abx_json_writer *jw, const char *key, double part, double whole)
{
	abx_jw_krounded(jw, key, whole > 0 ? part / whole * 100 : 0, 1);
}

static void write_memory(struct abx_json_writer *jw)
{
	struct system_memory memory;
	bool known;

	system_memory_read(&memory);
	known = memory.total_kb >= 0 && memory.available_kb >= 0;
	double used_kb = known ? (double)(memory.total_kb - memory.available_kb) : 0;

	write_known(jw, "memory_used_mb", known, used_kb / 1024);
	write_known(jw, "memory_total_mb", memory.total_kb >= 0, (double)memory.total_kb / 1024);
	write_percent(jw, "memory_percent", used_kb, (double)memory.total_kb);
}

static void write_cgroup(struct abx_json_writer *jw)
{
	struct system_cgroup cgroup;

	system_cgroup_read(&cgroup);
	write_known(jw, "memory_limit_mb", cgroup.memory_limit >= 0, (double)cgroup.memory_limit / MIB);
	write_known(jw, "memory_current_mb", cgroup.memory_current >= 0, (double)cgroup.memory_current / MIB);
	write_known(jw, "cpu_limit", cgroup.cpu_limit >= 0, cgroup.cpu_limit);
}

int h_system_metrics(struct abx_request *req, struct abx_err *err)
{
	abx_auto_strbuf struct abx_strbuf body = ABX_STRBUF_INIT;
	struct abx_json_writer jw = ABX_JSON_WRITER_INIT(&body);
	struct system_disk disk;

	if (system_disk_read(&disk) < 0)
		return abx_err_errno(err, errno, "Cannot look at the file system of /");
	abx_jw_object(&jw);
	write_load(&jw);
	write_memory(&jw);
	abx_jw_krounded(&jw, "disk_used_gb", disk.used / GIB, 2);
	abx_jw_krounded(&jw, "disk_total_gb", disk.total / GIB, 2);
	write_percent(&jw, "disk_percent", disk.used, disk.total);
	abx_jw_krounded(&jw, "uptime_seconds", (double)(abx_clock_ms() - req->service->board->started_ms) / 1000, 2);
	write_cgroup(&jw);
	abx_jw_object_end(&jw);
	return abx_response_json(&req->res, 200, &body, err);
}
