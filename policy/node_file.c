/* Documents that are files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy/node.h"

struct abx_node *abx_nodes_parse(const char *name, bool json_only, const char *text, size_t len, struct abx_err *err)
{
	size_t name_len = strlen(name);
	struct abx_err json_err = ABX_ERR_INIT;
	bool json = json_only || (name_len > 5 && strcmp(name + name_len - 5, ".json") == 0);
	struct abx_node *root = NULL;

	/* libyaml would take it for a part of the first key. */
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		text += 3;
		len -= 3;
	}
	/* What begins like JSON may be YAML all the same. */
	if (json || text[strspn(text, " \t\r\n")] == '{')
		root = abx_json_parse_nodes(name, text, len, json ? err : &json_err);
	return root || json ? root : abx_yaml_parse(name, text, len, err);
}

char *abx_node_file(const char *path, size_t *ret_len, struct abx_err *err)
{
	abx_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	abx_auto_free char *text = malloc(ABX_NODE_SIZE + 1);
	size_t len = 0;
	ssize_t n = 1;

	if (!text) {
		abx_err_set(err, ABX_E_INTERNAL, "Out of memory");
		return NULL;
	}
	while (fd >= 0 && n > 0 && len < ABX_NODE_SIZE) {
		n = read(fd, text + len, ABX_NODE_SIZE - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (fd < 0 || n < 0) {
		abx_err_set(err, ABX_E_VALUE, "%s: cannot be read: %s", path, strerror(errno));
		return NULL;
	}
	if (len == ABX_NODE_SIZE) {
		abx_err_set(err, ABX_E_VALUE, "%s: is larger than %zu bytes", path, ABX_NODE_SIZE - 1);
		return NULL;
	}
	text[len] = '\0';
	*ret_len = len;
	return ABX_STEAL(text);
}
