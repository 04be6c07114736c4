/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What flightrecd is told: the configuration file with its drop-ins, then the command line, which wins.
 * Keys and options: flightrecd.conf(5), flightrecd(8).
 */

#include "base/buf.h"
#include "base/command_line.h"
#include "base/diag.h"
#include "capture/event.h"
#include "dump/retention.h"
#include "trigger/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_config_event {
	char *spec;   /* Events= / -e */
	char *filter; /* Filter= / --filter that followed it, or NULL */
	char *origin; /* "file:line" or "command line", for errors */
};

enum fr_build_ids {
	FR_BUILD_IDS_NO,
	FR_BUILD_IDS_YES,
	FR_BUILD_IDS_AUTO,
};

struct fr_config {
	/* [Recorder] */
	struct fr_config_event *events; /* none: the default event */
	size_t n_events;
	struct fr_event_defaults defaults;  /* Frequency= Period= CallGraph= */
	char *cpus;			    /* CPUs= */
	char *cgroup;			    /* CGroup= */
	uint64_t ring_bytes;		    /* RingSize=, 64M */
	char *ring_origin;		    /* who said so, for errors; NULL: nobody */
	uint64_t kernel_buffer_bytes;	    /* KernelBuffer= per CPU, auto */
	enum fr_build_ids kernel_build_ids; /* KernelBuildIDs=, auto */
	uint64_t sideband_buffer_bytes;	    /* SidebandBuffer= per CPU, 512K */
	uint64_t auxiliary_max_bytes;	    /* AuxiliaryMax=, 32M; 0: no compaction by size */
	uint64_t auxiliary_max_age_ns;	    /* AuxiliaryMaxAge=, 1h; 0: none by age */
	int compression_level;		    /* CompressionLevel=, 1 */
	char *directory;		    /* Directory=, /var/lib/flightrec */
	char *socket;			    /* ControlSocket=, /run/flightrec/control; "": none */
	char *group;   /* Group=, flightrec: who may read and dump, if there is such a group; "": none */
	int log_level; /* LogLevel=, info */
	uint64_t cpu_budget_ppm; /* CPUBudget=, in millionths of a CPU; 0: no limit */
	char *metrics_listen;	 /* MetricsListen=, "": none */
	bool metrics_public;	 /* MetricsPublic=, no: only addresses of this machine */
	/* [Dump] */
	bool dump_compress;	       /* Compression=, yes */
	uint64_t window_ns;	       /* Window=all: 0 */
	uint64_t post_trigger_ns;      /* PostTrigger=, 0 */
	uint64_t block_bytes;	       /* BlockSize=, 1M */
	unsigned queue_depth;	       /* QueueDepth=, 8 */
	struct fr_retention retention; /* MaxUse= KeepFree= MaxFiles= MaxAge= */
	bool keep_failed;	       /* KeepFailed=, yes */

	uint64_t cache_bytes;	     /* CacheObjects=, 0: none */
	uint64_t cache_object_bytes; /* CacheObjectMax=, 256M */

	struct fr_triggers_config triggers; /* [Triggers] */
	struct fr_trigger_config *trigger;  /* [Trigger NAME], in the order in which they were named first */
	size_t n_trigger;

	size_t bytes_read;  /* of all files, comments included */
	struct fr_buf text; /* what the files said, as one file: for the next instance */

	/* Command line only */
	pid_t *pids;
	size_t n_pids;
	char **command;	      /* argv of "-- COMMAND", points into main's argv; NULL: daemon use */
	bool all_cpus;	      /* -a: with COMMAND, the whole machine and not only it */
	bool directory_given; /* -o */
	bool own;	      /* of a person, and not the machine's: arms only what it is told to */
};

/* Defaults. */
void fr_config_init(struct fr_config *c);
void fr_config_deinit(struct fr_config *c);

/* Read PATH (NULL: /etc/flightrec/flightrecd.conf where it exists) and the drop-ins flightrecd.conf.d/
   (*.conf) of /usr/lib/flightrec, /run/flightrec, /etc/flightrec (a later directory masks a file of the same
   name; sorted by name across all). With a PATH that is given, its drop-ins are those of PATH.d only. An
   empty assignment to a list clears it. -EINVAL with "file:line: …" in D for the first bad line. */
int fr_config_load(struct fr_config *c, const char *path, struct fr_diag *d);

/* What fr_config_load() would read, in order, for verify-config; a NULL-terminated array to be freed with its
 * strings. */
int fr_config_files(const char *path, char ***ret, struct fr_diag *d);

/* Whether it is tasks that are recorded, wherever they run, and not CPUs. */
static inline bool fr_config_follows_tasks(const struct fr_config *c)
{
	return c->n_pids || (c->command && !c->all_cpus);
}

/* The trigger of that name in C, or NULL. Borrowed until one is added. */
const struct fr_trigger_config *fr_config_find_trigger(const struct fr_config *c, const char *name);

/* Assign VALUE to SECTION's NAME as if ORIGIN ("file:line") said so. 0, -ENOMEM, or -EINVAL with D that
   begins with ORIGIN. */
int fr_config_set(struct fr_config *c, const char *section, const char *name, const char *value,
	const char *origin, struct fr_diag *d);

extern const struct fr_command_line fr_flightrecd_command_line;

/* Parse argv into C, which is fresh from init(): first the file that --config names, or the default one, by
   fr_config_load(), then the options over it. With COMMAND the default file is not read and the directory is
   "." and there is no control socket, unless options say otherwise. May be called again with the same argv.
   0; 1: --help, --help-config or --version was printed; negative errno with D. Main thread (getopt). */
int fr_options_parse(struct fr_config *c, int argc, char *argv[], struct fr_diag *d);

/* Check what only the whole can tell (limits, combinations, triggers without a source). -EINVAL with D. */
int fr_config_check(const struct fr_config *c, struct fr_diag *d);
