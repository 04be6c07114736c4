/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Declarations that the files of the event parser share. Private to this folder. */

#include "base/diag.h"
#include "base/file.h"
#include "capture/event.h"

/* The directories where the machine describes its events. Tests use other directories. */
struct fr_event_env {
	const char *pmu_dir;	 /* /sys/bus/event_source/devices */
	const char *tracefs_dir; /* NULL: where tracefs is mounted */
};
extern const struct fr_event_env fr_event_env_machine;

/* One term between slashes. Both strings point into the parser's copy of the specification. */
struct fr_term {
	char *name;
	char *value; /* NULL: no "=" */
};
#define FR_TERMS_MAX 64
#define FR_SPEC_MAX (64u << 10)

struct fr_terms {
	struct fr_term items[FR_TERMS_MAX];
	size_t n;
};

/* One event of a specification, split into HEAD [/TERMS/] [MODIFIERS]. */
struct fr_spec {
	const char *text; /* the whole event, for messages */
	char *head;
	char *terms_text; /* the text between the slashes; NULL: there are no slashes */
	struct fr_terms terms;
	const char *modifiers; /* "": there are none */
};

/* The values of the terms that every event can have. 0, false or NULL: the term is not given. */
struct fr_term_values {
	uint64_t period, freq;
	enum fr_call_graph call_graph;
	uint64_t stack_bytes, max_stack;
	enum fr_capture_way capture;
	bool overwrite, no_inherit;
	bool off; /* enabled=no */
	const char *name;
	bool has_config[3];
	uint64_t config[3];
};

/* event_parse.c: fr_event_parse() for the machine that ENV describes. */
int fr_event_parse_env(const struct fr_event_env *env, const char *spec,
	const struct fr_event_defaults *defaults, struct fr_event_list *list, struct fr_diag *d);

/* event_names.c */
/* Calls FN with each name and alias of the events that every kernel has, and with the name of each cache
   event. */
void fr_event_names_foreach(void (*fn)(void *ctx, const char *name), void *ctx);
/* Finds the hardware, software, cache or raw event NAME. Returns whether there is such an event. If so,
   RET_NAME gets the event's name as perf prints it. */
bool fr_event_by_name(
	const char *name, uint32_t *ret_type, uint64_t *ret_config, char *ret_name, size_t size);
/* Returns whether NAME can safely be a part of a path below sysfs or tracefs. */
bool fr_event_name_is_safe(const char *name);

/* event_terms.c. Functions of type int return 0; or a negative errno, with a message in D. */
/* Parses S, which is a decimal number, a hexadecimal number with 0x, or an octal number with a leading 0.
   Returns whether S is a number from MIN to MAX. */
bool fr_term_number(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
int fr_terms_split(char *text, struct fr_terms *ret, struct fr_diag *d);
/* Moves the terms that every event can have from T to V. T keeps the other terms. SPEC is the event's text,
   for messages. */
int fr_terms_common(struct fr_terms *t, const char *spec, struct fr_term_values *v, struct fr_diag *d);
int fr_modifiers_apply(const char *modifiers, const char *spec, struct perf_event_attr *a, struct fr_diag *d);
extern const char fr_common_terms[]; /* the names of the terms that every event can have, for messages */

/* event_attr.c: the common parts of an attr. The caller sets type, config and modifiers before
   fr_event_attr_finish(). */
void fr_event_attr_init(struct perf_event_attr *a);
int fr_event_attr_finish(struct fr_event *e, const struct fr_term_values *v,
	const struct fr_event_defaults *defaults, struct fr_diag *d);
/* The I-th config word of A: 0 to 2. */
static inline __u64 *fr_event_attr_config(struct perf_event_attr *a, unsigned i)
{
	return i == 0 ? &a->config : i == 1 ? &a->config1 : &a->config2;
}
/* Appends E to LIST. On success, LIST owns the strings of E, and E is empty. Returns 0, -E2BIG or -ENOMEM. On
   an error, E does not change. */
int fr_event_list_add(struct fr_event_list *list, struct fr_event *e);
void fr_event_deinit(struct fr_event *e);
/* Makes a deep copy. Returns 0 or -ENOMEM; TO must be freed also after an error. */
int fr_event_copy(struct fr_event *to, const struct fr_event *from);
#define _cleanup_event_ _cleanup_(fr_event_deinit)

/* event_off_cpu.c: adds the two events of "offcpu" to LIST. Returns 0; or a negative errno, with a message in
   D. */
int fr_off_cpu_parse(const struct fr_spec *s, const struct fr_term_values *v, struct fr_event_list *list,
	struct fr_diag *d);

/* event_pmu.c */
bool fr_pmu_exists(const struct fr_event_env *env, const char *pmu);
/* Returns whether PMU is a core PMU, which counts in the cores of CPUs. Users can write a named event of a
   core PMU without the name of the PMU. */
bool fr_pmu_is_core(const struct fr_event_env *env, const char *pmu);
/* Fills the attr of E from TERMS, and sets e->cpus to the CPUs of PMU. Returns 0; or a negative errno, with a
   message in D. */
int fr_pmu_event(const struct fr_event_env *env, const char *pmu, const struct fr_terms *terms,
	struct fr_event *e, struct fr_diag *d);
typedef int (*fr_pmu_fn)(void *ctx, const char *pmu, const char *event);
/* Calls FN for each PMU (with EVENT NULL), and then for each named event of each PMU. If FN returns a value
   that is not 0, stops and returns that value. Otherwise returns 0. */
int fr_pmu_foreach(const struct fr_event_env *env, fr_pmu_fn fn, void *ctx);

/* event_tracepoint.c */
typedef int (*fr_tracepoint_fn)(void *ctx, const char *system, const char *name, uint64_t id);
/* Calls FN for every tracepoint whose system and name match the globs. Returns the number of these
   tracepoints; or a negative errno, which can come from FN. */
int fr_tracepoint_match(const struct fr_event_env *env, const char *system_glob, const char *name_glob,
	fr_tracepoint_fn fn, void *ctx, struct fr_diag *d);
/* Appends the text of the file `format` of "system:name", and a NUL, to RET. Returns 0 or a negative errno.
 */
int fr_tracepoint_read_format(const struct fr_event_env *env, const char *tracepoint, struct fr_buf *ret);
/* Writes the fields of "system:name" to RET, separated by ", ". RET is empty if the format cannot be read. */
void fr_tracepoint_fields(const struct fr_event_env *env, const char *tracepoint, char *ret, size_t size);

/* event_suggest.c: writes "did you mean a, b or c?" to RET, with at most five known names that are similar to
   NAME. RET is empty if no name is similar. */
void fr_event_suggest(const struct fr_event_env *env, const char *name, char *ret, size_t size);
