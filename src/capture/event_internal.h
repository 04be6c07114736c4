/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Between the files of the event parser; not for other folders. */

#include "base/diag.h"
#include "capture/event.h"

/* Where the machine describes its events. Tests point these at trees of their own. */
struct fr_event_env {
	const char *pmu_dir;	 /* /sys/bus/event_source/devices */
	const char *tracefs_dir; /* NULL: where tracefs is mounted */
};
extern const struct fr_event_env fr_event_env_machine;

/* One term between slashes; both point into the spec's own copy. */
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

/* One event of a spec, cut into its parts: HEAD [/TERMS/] [MODIFIERS]. */
struct fr_spec {
	const char *text; /* all of it, for messages */
	char *head;
	char *terms_text; /* between the slashes as written; NULL: no slashes */
	struct fr_terms terms;
	const char *modifiers; /* "" where there are none */
};

/* What the terms that every event takes said. */
struct fr_term_values {
	uint64_t period, freq;
	enum fr_call_graph call_graph;
	uint32_t stack_bytes;
	uint16_t max_stack;
	bool overwrite, no_inherit;
	const char *name;
	bool has_config[3];
	uint64_t config[3];
};

/* event_parse.c: fr_event_parse() on a machine of the caller's. */
int fr_event_parse_env(const struct fr_event_env *env, const char *spec,
	const struct fr_event_defaults *defaults, struct fr_event_list *list, struct fr_diag *d);

/* event_names.c */
struct fr_event_name {
	const char *name, *alias; /* alias may be NULL */
	uint32_t type;
	uint64_t config;
};
const struct fr_event_name *fr_event_names(size_t *ret_n);
/* A hardware, software, cache or raw event. True and TYPE, CONFIG and its name as perf prints it. */
bool fr_event_by_name(
	const char *name, uint32_t *ret_type, uint64_t *ret_config, char *ret_name, size_t size);
/* The I-th cache event's name into RET; false past the last. */
bool fr_cache_event_name(size_t i, char *ret, size_t size);

/* event_terms.c */
int fr_terms_split(char *text, struct fr_terms *ret, struct fr_diag *d);
/* Take the terms that every event has out of T, which keeps the others. */
int fr_terms_common(struct fr_terms *t, const char *spec, struct fr_term_values *v, struct fr_diag *d);
int fr_modifiers_apply(const char *modifiers, const char *spec, struct perf_event_attr *a, struct fr_diag *d);
extern const char fr_common_terms[]; /* their names, for messages */

/* event_attr.c: everything that all events have alike; A has type, config and modifiers. */
void fr_event_attr_init(struct perf_event_attr *a);
int fr_event_attr_finish(struct perf_event_attr *a, const struct fr_term_values *v,
	const struct fr_event_defaults *defaults, struct fr_diag *d);
/* Append; takes what E owns in any case. */
int fr_event_list_add(struct fr_event_list *list, struct fr_event *e);
void fr_event_deinit(struct fr_event *e);

/* event_pmu.c */
bool fr_pmu_exists(const struct fr_event_env *env, const char *pmu);
/* type, config, config1, config2 of A from TERMS; CPUs and reach into E. */
int fr_pmu_event(const struct fr_event_env *env, const char *pmu, const struct fr_terms *terms,
	struct fr_event *e, struct fr_diag *d);
/* Call FN for each PMU; EVENT is NULL once per PMU, then each of its named events. */
typedef int (*fr_pmu_fn)(void *ctx, const char *pmu, const char *event);
int fr_pmu_foreach(const struct fr_event_env *env, fr_pmu_fn fn, void *ctx);
/* Whether PMU counts the CPUs' cores, so that its events may be named without it. */
bool fr_pmu_is_core(const struct fr_event_env *env, const char *pmu);

/* event_tracepoint.c */
/* The tracefs directory into RET, or -ENOENT / -EACCES with D. */
int fr_tracefs_dir(const struct fr_event_env *env, char *ret, size_t size, struct fr_diag *d);
/* Call FN for every tracepoint that matches both globs. The number that matched, or a negative errno. */
typedef int (*fr_tracepoint_fn)(void *ctx, const char *system, const char *name, uint64_t id);
int fr_tracepoint_match(const struct fr_event_env *env, const char *system_glob, const char *name_glob,
	fr_tracepoint_fn fn, void *ctx, struct fr_diag *d);
/* The fields of "system:name", separated by ", ", into RET; empty where it cannot be read. */
void fr_tracepoint_fields(const struct fr_event_env *env, const char *tracepoint, char *ret, size_t size);

/* event_suggest.c: at most five known names that are near NAME, as "did you mean a, b or c?", else "". */
void fr_event_suggest(const struct fr_event_env *env, const char *name, char *ret, size_t size);

/* A name that may stand in a path below sysfs or tracefs. */
bool fr_event_name_is_safe(const char *s);
