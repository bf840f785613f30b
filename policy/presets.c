/* The presets are policy documents themselves. They are part of the program, so that an installation cannot be without them or with others. */
#include <string.h>

#include "policy/presets_data.h"
#include "policy/schema.h"

const char *const abx_preset_names[] = { "default", "read-only", "files-only", "locked", "full", NULL };

static const char *const texts[] = { preset_default, preset_read_only, preset_files_only, preset_locked, preset_full };

struct abx_document *abx_preset_load(const char *name, struct abx_err *err)
{
	for (size_t i = 0; i < ABX_N(texts); i++) {
		const struct abx_document_source source = { .name = abx_preset_names[i] };

		if (strcmp(abx_preset_names[i], name) == 0)
			return abx_document_parse(&source, texts[i], strlen(texts[i]), err);
	}
	abx_err_set(err, ABX_E_VALUE, "There is no preset '%s'", name);
	return NULL;
}
