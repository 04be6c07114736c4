// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of keys: the section, default, type and member of each key. conf/flightrecd.conf explains the
   keys. */
#include "config/values.h"
#include "base/cleanup.h"
#include "base/nearest.h"

#include <errno.h>
#include <string.h>

#define MEMBER(type, member) .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)
#define OTHER(member) MEMBER(struct fr_config, member)
#define REOPEN(member) MEMBER(struct fr_config, member), FR_RELOAD_REOPEN
#define AT_ONCE(member) MEMBER(struct fr_config, member), FR_RELOAD_AT_ONCE
#define RESTART(member) MEMBER(struct fr_config, member), FR_RELOAD_RESTART

#define RING FR_RING_SECTION
#define OF_RING(member) MEMBER(struct fr_ring_config, member)
#define TRIGGER FR_TRIGGER_SECTION
#define OF_TRIGGER(member) MEMBER(struct fr_trigger_config, member)
#define BIT(kind) (1u << FR_TRIGGER_##kind)
#define BPF (BIT(PROBE) | BIT(PROGRAM))
#define CODE (BIT(FUNCTION) | BIT(USDT))

_Static_assert(FR_TRIGGER_SIGNAL == 0, "a source of 0 means none: no key names SIGUSR1");

const struct fr_config_key fr_config_keys[] = {
	{"Recorder", "Events", NULL, .type = &fr_type_events},
	{"Recorder", "Filter", NULL, .type = &fr_type_filter},
	{"Recorder", "Frequency", NULL, &fr_type_frequency, REOPEN(defaults.frequency_hz)},
	{"Recorder", "Period", NULL, &fr_type_period, REOPEN(defaults.period)},
	{"Recorder", "CallGraph", NULL, &fr_type_call_graph, REOPEN(defaults.call_graph)},
	{"Recorder", "UnwindMemory", "64M", &fr_type_unwind_memory, AT_ONCE(unwind_memory_bytes)},
	{"Recorder", "OffCPU", "auto", &fr_type_off_cpu, REOPEN(off_cpu_ns)},
	{"Recorder", "CPUs", NULL, &fr_type_cpus, REOPEN(cpus)},
	{"Recorder", "CGroup", NULL, &fr_type_string, REOPEN(cgroup)},
	{"Recorder", "RingSize", "64M", &fr_type_ring_size, OTHER(ring_bytes)},
	{"Recorder", "RingMemory", "no", &fr_type_path_or_no, RESTART(ring_memory)},
	{"Recorder", "KernelBuffer", "auto", &fr_type_kernel_buffer, REOPEN(kernel_buffer_bytes)},
	{"Recorder", "SidebandBuffer", "512K", &fr_type_buffer, REOPEN(sideband_buffer_bytes)},
	{"Recorder", "AuxBuffer", "4M", &fr_type_buffer, RESTART(aux_buffer_bytes)},
	{"Recorder", "KernelBuildIDs", "auto", &fr_type_build_ids, REOPEN(kernel_build_ids)},
	{"Recorder", "AuxiliaryMax", "32M", &fr_type_size, RESTART(auxiliary_max_bytes)},
	{"Recorder", "AuxiliaryMaxAge", "1h", &fr_type_duration, RESTART(auxiliary_max_age_ns)},
	{"Recorder", "CompressionLevel", "1", &fr_type_compression_level, RESTART(compression_level)},
	{"Recorder", "Directory", "/var/lib/flightrec", &fr_type_path, RESTART(directory)},
	{"Recorder", "ControlSocket", "/run/flightrec/control", &fr_type_path_or_no, RESTART(socket)},
	{"Recorder", "Group", "flightrec", &fr_type_string, RESTART(group)},
	{"Recorder", "LogLevel", "info", &fr_type_log_level, AT_ONCE(log_level)},
	{"Recorder", "CPUBudget", "no", &fr_type_cpu_part, AT_ONCE(cpu_budget_ppm)},
	{"Recorder", "MetricsListen", "", &fr_type_address, RESTART(metrics_listen)},
	{"Recorder", "MetricsPublic", "no", &fr_type_boolean, OTHER(metrics_public)},
	{"Recorder", "SidebandRing", "auto", &fr_type_sideband_ring, OTHER(sideband_ring_bytes)},
	{RING, "Size", NULL, &fr_type_size, OF_RING(size_bytes), .unset = FR_RING_BYTES},
	{RING, "Events", NULL, .type = &fr_type_ring_events},
	{RING, "Filter", NULL, .type = &fr_type_ring_filter},
	{RING, "Frequency", NULL, &fr_type_frequency, OF_RING(defaults.frequency_hz)},
	{RING, "Period", NULL, &fr_type_period, OF_RING(defaults.period)},
	{RING, "CallGraph", NULL, &fr_type_ring_call_graph, OF_RING(defaults.call_graph)},
	{RING, "CompressionLevel", NULL, &fr_type_compression_level, OF_RING(compression_level)},
	{RING, "Window", NULL, &fr_type_window, OF_RING(window_ns)},
	{"Dump", "Compression", "yes", &fr_type_boolean, AT_ONCE(dump_compress)},
	{"Dump", "Window", "all", &fr_type_window, AT_ONCE(window_ns)},
	{"Dump", "PostTrigger", "0", &fr_type_post_trigger, AT_ONCE(post_trigger_ns)},
	{"Dump", "AuxWindow", "10s", &fr_type_aux_window, AT_ONCE(aux_window_ns)},
	{"Dump", "MaxUse", "", &fr_type_disk_limit, AT_ONCE(retention.max_use)},
	{"Dump", "KeepFree", "", &fr_type_disk_limit, AT_ONCE(retention.keep_free)},
	{"Dump", "MaxFiles", "0", &fr_type_max_files, AT_ONCE(retention.max_files)},
	{"Dump", "MaxAge", "0", &fr_type_duration, AT_ONCE(retention.max_age_ns)},
	{"Dump", "KeepFailed", "yes", &fr_type_boolean, AT_ONCE(keep_failed)},
	{"Dump", "BlockSize", "1M", &fr_type_size, AT_ONCE(block_bytes)},
	{"Dump", "QueueDepth", "8", &fr_type_queue_depth, AT_ONCE(queue_depth)},
	{"Dump", "CacheObjects", "no", &fr_type_cache, RESTART(cache_bytes)},
	{"Dump", "CacheObjectMax", "256M", &fr_type_size, RESTART(cache_object_bytes)},
	{"Triggers", "Cooldown", "1min", &fr_type_duration, OTHER(triggers.cooldown_ns)},
	{"Triggers", "MinFill", "0", &fr_type_duration, OTHER(triggers.min_fill_ns)},
	{"Triggers", "Window", "30s", &fr_type_window, OTHER(triggers.window_ns)},
	{"Triggers", "RateLimit", "20/1h", .type = &fr_type_rate},
	{"Triggers", "SwitchLimit", "10min", &fr_type_duration, AT_ONCE(switch_limit_ns)},
	{"Triggers", "Socket", "/run/flightrec/trigger", &fr_type_path_or_no, OTHER(triggers.socket)},
	{TRIGGER, "Probe", NULL, &fr_type_probe, OF_TRIGGER(subject), .source = FR_TRIGGER_PROBE},
	{TRIGGER, "Program", NULL, &fr_type_path, OF_TRIGGER(subject), .source = FR_TRIGGER_PROGRAM},
	{TRIGGER, "Function", NULL, &fr_type_function, OF_TRIGGER(subject), .source = FR_TRIGGER_FUNCTION},
	{TRIGGER, "USDT", NULL, &fr_type_usdt, OF_TRIGGER(subject), .source = FR_TRIGGER_USDT},
	{TRIGGER, "Pressure", NULL, &fr_type_string, OF_TRIGGER(subject), .source = FR_TRIGGER_PRESSURE},
	{TRIGGER, "Event", NULL, &fr_type_string, OF_TRIGGER(subject), .source = FR_TRIGGER_EVENT},
	{TRIGGER, "Every", NULL, &fr_type_interval, OF_TRIGGER(every_ns), .source = FR_TRIGGER_TIMER},
	{TRIGGER, "Application", NULL, &fr_type_application, OF_TRIGGER(subject),
		.source = FR_TRIGGER_APPLICATION},
	{TRIGGER, "Threshold", NULL, &fr_type_string, OF_TRIGGER(threshold),
		.kinds = BPF | CODE | BIT(PRESSURE) | BIT(EVENT)},
	{TRIGGER, "Interval", NULL, &fr_type_interval, OF_TRIGGER(interval_ns), .unset = FR_TRIGGER_UNSET,
		.kinds = BPF | BIT(PRESSURE) | BIT(EVENT)},
	{TRIGGER, "Filter", NULL, &fr_type_string, OF_TRIGGER(filter), .kinds = BIT(EVENT)},
	{TRIGGER, "Syscall", NULL, &fr_type_string, OF_TRIGGER(syscalls), .kinds = BIT(PROBE)},
	{TRIGGER, "Comm", NULL, &fr_type_comm, OF_TRIGGER(comm), .kinds = BPF | CODE | BIT(EVENT)},
	{TRIGGER, "CGroup", NULL, &fr_type_string, OF_TRIGGER(cgroup),
		.kinds = BPF | CODE | BIT(EVENT) | BIT(PRESSURE)},
	{TRIGGER, "Pid", NULL, &fr_type_pid, OF_TRIGGER(pid), .kinds = BPF | CODE | BIT(EVENT)},
	{TRIGGER, "Set", NULL, &fr_type_globals, OF_TRIGGER(set), .kinds = BPF},
	{TRIGGER, "Action", NULL, &fr_type_actions, OF_TRIGGER(actions),
		.kinds = ~(BIT(SIGNAL) | BIT(CONTROL) | BIT(FLEET))},
	{TRIGGER, "Enabled", "yes", &fr_type_boolean, OF_TRIGGER(enabled)},
	{TRIGGER, "Cooldown", NULL, &fr_type_duration, OF_TRIGGER(cooldown_ns), .unset = FR_TRIGGER_UNSET},
	{TRIGGER, "MinFill", NULL, &fr_type_duration, OF_TRIGGER(min_fill_ns), .unset = FR_TRIGGER_UNSET},
	{TRIGGER, "Window", NULL, &fr_type_window, OF_TRIGGER(window_ns), .unset = FR_TRIGGER_UNSET},
	{TRIGGER, "PostTrigger", NULL, &fr_type_post_trigger, OF_TRIGGER(post_ns), .unset = FR_TRIGGER_UNSET},
	{"Fleet", "Enabled", "no", &fr_type_boolean, OTHER(fleet.enabled)},
	{"Fleet", "Servers", "", &fr_type_servers, OTHER(fleet.servers)},
	{"Fleet", "Credentials", "", &fr_type_path_or_empty, OTHER(fleet.credentials)},
	{"Fleet", "CACertificate", "", &fr_type_path_or_empty, OTHER(fleet.ca)},
	{"Fleet", "Certificate", "", &fr_type_path_or_empty, OTHER(fleet.certificate)},
	{"Fleet", "Key", "", &fr_type_path_or_empty, OTHER(fleet.key)},
	{"Fleet", "Name", "", &fr_type_machine_name, OTHER(fleet.name)},
	{"Fleet", "Labels", "", &fr_type_labels, OTHER(fleet.labels)},
	{"Fleet", "Upload", "", &fr_type_location, OTHER(fleet.upload)},
	{"Fleet", "UploadEndpoint", "", &fr_type_endpoint, OTHER(fleet.upload_endpoint)},
	{"Fleet", "UploadRegion", "us-east-1", &fr_type_region, OTHER(fleet.upload_region)},
	{"Fleet", "UploadCredentials", "", &fr_type_path_or_empty, OTHER(fleet.upload_credentials)},
	{"Fleet", "UploadLimit", "10M", &fr_type_size, OTHER(fleet.upload_limit)},
	{"Fleet", "UploadQueue", "2G", &fr_type_size, OTHER(fleet.hold_max)},
	{"Fleet", "Incident", "1min", &fr_type_interval, OTHER(fleet.incident_ns)},
	{"Fleet", "MetricsListen", "", &fr_type_address, OTHER(fleet.metrics_listen)},
	{.name = NULL},
};

bool fr_config_has_same_value(const struct fr_config_key *key, const void *a, const void *b)
{
	const void *x = (const char *)a + key->offset, *y = (const char *)b + key->offset;

	return key->type->is_string ? fr_string_is_same(*(char *const *)x, *(char *const *)y)
				    : memcmp(x, y, key->size) == 0;
}

static const char *key_name(const void *ctx, size_t i)
{
	return fr_config_keys[i].name;
}

static const char *section_name(const void *ctx, size_t i)
{
	static const char *const names[] = {"Recorder", "Dump", "Triggers", "Ring", "Fleet"};

	return names[i];
}

static int fail_unknown_section(const char *section, struct fr_diag *d)
{
	const char *rest = section + strcspn(section, " "), *near;
	char word[32], hint[128] =
			       "the sections are [Recorder], [Ring NAME], [Dump], [Triggers], [Trigger NAME] "
			       "and [Fleet]";

	snprintf(word, sizeof(word), "%.*s", (int)(rest - section), section);
	near = fr_nearest_name(word, section_name, NULL, 5);
	if (near && !strcmp(near, "Ring"))
		snprintf(hint, sizeof(hint), "did you mean [Ring%s]?", *rest ? rest : " NAME");
	else if (near && *rest && !strcmp(near, "Triggers"))
		snprintf(hint, sizeof(hint), "did you mean [Trigger%s]?", rest);
	else if (near)
		snprintf(hint, sizeof(hint), "did you mean [%s]?", near);
	return fr_fail(d, -EINVAL, hint, "unknown section [%s]", section);
}

/* Reports the unknown key NAME. SECTION is the name of its section in the table of keys, and SHOWN is the
   name of this section in the file. The hint names a known key that is similar to NAME. If several sections
   have this known key, the hint names the key of SECTION, and [Ring NAME] last. */
static int fail_unknown_key(const char *section, const char *shown, const char *name, struct fr_diag *d)
{
	const char *near = fr_nearest_name(name, key_name, NULL, FR_ARRAY_SIZE(fr_config_keys) - 1),
		   *owner = NULL;
	char hint[128] = "flightrecd --help-config lists all keys";

	for (const struct fr_config_key *k = fr_config_keys; near && k->name; k++)
		if (!strcmp(near, k->name) &&
			(!owner || !strcmp(owner, RING) || !strcmp(k->section, section)))
			owner = k->section;
	if (owner && !strcmp(owner, section))
		snprintf(hint, sizeof(hint), "did you mean %s=?", near);
	else if (owner)
		snprintf(hint, sizeof(hint), "did you mean %s= of [%s]?", near, owner);
	return fr_fail(d, -EINVAL, hint, "unknown key '%s' in [%s]", name, shown);
}

static bool is_section(const char *section)
{
	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (!strcmp(k->section, section))
			return true;
	return false;
}

/* Finds SECTION; if it is "Trigger NAME" or "Ring NAME", finds or creates the trigger or the ring. Sets *RET
   to the name of the section in the table of keys, and *RET_OBJECT to the struct that has the members for the
   keys of the section. */
static int enter_section(struct fr_config *c, const char *section, const char *origin, const char **ret,
	void **ret_object, struct fr_diag *d)
{
	const char *trigger = fr_config_trigger_name(section), *ring = fr_config_ring_name(section);
	struct fr_trigger_config *t = NULL;
	struct fr_ring_config *of_ring = NULL;
	int r = 0;

	if (trigger)
		r = fr_config_add_trigger(c, trigger, origin, &t, d);
	else if (ring)
		r = fr_config_add_ring(c, ring, origin, &of_ring, d);
	else if (!is_section(section))
		r = fail_unknown_section(section, d);
	*ret = trigger ? FR_TRIGGER_SECTION : ring ? FR_RING_SECTION : section;
	*ret_object = trigger ? (void *)t : ring ? (void *)of_ring : c;
	return r;
}

static int assign(struct fr_config *c, const char *section, const char *name, const char *value,
	const char *origin, struct fr_diag *d)
{
	const char *canonical;
	void *object;
	int r;

	if (!*section)
		return fr_fail(d, -EINVAL, "write a section before it, for example [Recorder]",
			"%s= is before the first section", name);
	r = enter_section(c, section, origin, &canonical, &object, d);
	if (r < 0)
		return r;
	for (const struct fr_config_key *k = fr_config_keys; k->name; k++)
		if (!strcmp(k->section, canonical) && !strcmp(k->name, name))
			return fr_value_assign(&(struct fr_assignment){
				k, c, object, *value ? value : k->default_value, origin, d});
	return fail_unknown_key(canonical, section, name, d);
}

static int prefix_origin(int code, const char *origin, struct fr_diag *d)
{
	if (code < 0 && code != -ENOMEM)
		fr_diag_prefix(d, "%s", origin);
	return code;
}

int fr_config_begin_section(struct fr_config *c, const char *section, const char *origin, struct fr_diag *d)
{
	const char *canonical;
	void *object;

	return prefix_origin(enter_section(c, section, origin, &canonical, &object, d), origin, d);
}

int fr_config_set(struct fr_config *c, const char *section, const char *name, const char *value,
	const char *origin, struct fr_diag *d)
{
	return prefix_origin(assign(c, section, name, value, origin, d), origin, d);
}

void fr_config_print_default(FILE *f)
{
	static const char text[] =
#include "default_config.inc"
		;

	fputs(text, f);
}
