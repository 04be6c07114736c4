/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The configuration of flightrecd. flightrecd first reads the file with its drop-ins. A value on the command
 * line replaces a value of the file. flightrecd.conf(5) describes the keys, and flightrecd(8) the options.
 * docs/CONTRIBUTING.md says how to add a key or an option.
 */

#include "base/buf.h"
#include "base/command_line.h"
#include "base/diag.h"
#include "capture/event.h"
#include "dump/retention.h"
#include "source/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_config_event {
	char *spec;    /* Events= or -e */
	char *filter;  /* the Filter= or --filter of this event, or NULL */
	char *origin;  /* where it is set: "file:line" or "-e", for messages */
	unsigned ring; /* 0: [Recorder]; or the number of a [Ring NAME] (fr_config_ring_number()) */
};

#define FR_RING_DEFAULT "default" /* the name of the ring of [Recorder] */
#define FR_RING_NAME_SIZE 16
#define FR_RING_BYTES (16ULL << 20) /* Size= of a [Ring NAME] that does not set it */
#define FR_RINGS_NAMED_MAX 15u

/* A section [Ring NAME]: a ring of its own for some events. Its Events= and Filter= are in fr_config.events.
 */
struct fr_ring_config {
	char name[FR_RING_NAME_SIZE];
	char *origin;			   /* the first line of the section, or an option */
	uint64_t size_bytes;		   /* Size=, FR_RING_BYTES */
	struct fr_event_defaults defaults; /* Frequency= Period= CallGraph=; unset: those of [Recorder] */
	uint64_t compression_level;	   /* CompressionLevel=; 0: that of [Recorder] */
	uint64_t window_ns;		   /* Window=; 0: the window of the dump */
};

#define FR_RING_MEMORY_SIZE 256 /* most bytes of RingMemory=, with the NUL */

/* OffCPU=auto: if Events= has no events and the machine can do it, the threshold is FR_OFF_CPU_DEFAULT_NS. */
#define FR_OFF_CPU_AUTO UINT64_MAX

/* [Fleet], which only flightrec-agent and flightrec-fleet use. The recorder only checks it. The strings are
   never NULL; "" means that the key is not set. */
struct fr_fleet_config {
	bool enabled;		  /* Enabled=, no */
	char *servers;		  /* Servers=nats://a:4222,tls://b:4222 */
	char *credentials;	  /* Credentials=, the path of a NATS .creds file */
	char *ca;		  /* CACertificate=, the path of a PEM file, for broker and store */
	char *certificate, *key;  /* Certificate= Key=, of this machine, paths of PEM files */
	char *name;		  /* Name=, the name of the machine; "": the host name */
	char *labels;		  /* Labels=role=db,zone=a */
	char *upload;		  /* Upload=s3://bucket/prefix; "": dumps stay on the machine */
	char *upload_endpoint;	  /* UploadEndpoint=https://host:port */
	char *upload_region;	  /* UploadRegion=, us-east-1 */
	char *upload_credentials; /* UploadCredentials=, the path of a file like ~/.aws/credentials */
	uint64_t upload_limit;	  /* UploadLimit=10M, bytes a second; 0: no limit */
	uint64_t hold_max;	  /* UploadQueue=2G, bytes of dumps that wait for the store; 0: no limit */
	uint64_t incident_ns;	  /* Incident=1min: Action=fleet asks the fleet at most once in this time */
	char *metrics_listen;	  /* MetricsListen=, as in [Recorder] */
};

enum fr_build_ids {
	FR_BUILD_IDS_NO,
	FR_BUILD_IDS_YES,
	FR_BUILD_IDS_AUTO,
};

/* Each comment names the key or option of the member, and its default. The configuration owns the strings. An
   empty string means "none": for example, no socket. */
#define FR_UNWIND_MEMORY_MIN (1ULL << 20)
#define FR_UNWIND_MEMORY_MAX (1ULL << 30)

struct fr_config {
	/* [Recorder] */
	struct fr_config_event *events; /* if there are no events: the default event is recorded */
	size_t n_events;
	struct fr_event_defaults defaults; /* Frequency= Period= CallGraph= */
	uint64_t off_cpu_ns;		   /* OffCPU=, auto; 0: no; FR_OFF_CPU_AUTO */
	char *cpus;			   /* CPUs=; NULL: all */
	char *cgroup;			   /* CGroup=; NULL: all tasks */
	uint64_t ring_bytes;		   /* RingSize=, 64M */
	char *ring_origin;		   /* where RingSize= is set: "file:line", an option or "default" */
	char *ring_memory;	      /* RingMemory=; "": the ring is in memory that ends with the machine */
	uint64_t unwind_memory_bytes; /* UnwindMemory= FR_UNWIND_MEMORY_…, 64M */
	uint64_t kernel_buffer_bytes; /* KernelBuffer= for each CPU, auto */
	enum fr_build_ids kernel_build_ids; /* KernelBuildIDs=, auto */
	uint64_t sideband_buffer_bytes;	    /* SidebandBuffer= for each CPU, 512K */
	uint64_t aux_buffer_bytes;	    /* AuxBuffer= for each AUX event and CPU, 4M */
	uint64_t auxiliary_max_bytes;	    /* AuxiliaryMax=, 32M; 0: no limit */
	uint64_t auxiliary_max_age_ns;	    /* AuxiliaryMaxAge=, 1h; 0: no limit */
	int compression_level;		    /* CompressionLevel=, 1 */
	char *directory;		    /* Directory=, /var/lib/flightrec */
	char *socket;			    /* ControlSocket=, /run/flightrec/control */
	char *group;			    /* Group=, flightrec; the group need not exist */
	int log_level;			    /* LogLevel=, info */
	uint64_t cpu_budget_ppm;	    /* CPUBudget=, no; parts per million of a CPU; 0: no limit */
	char *metrics_listen;		    /* MetricsListen=, "" */
	bool metrics_public;		    /* MetricsPublic=, no */
	/* [Dump] */
	bool dump_compress;	       /* Compression=, yes */
	uint64_t window_ns;	       /* Window=, all; 0: all */
	uint64_t post_trigger_ns;      /* PostTrigger=, 0 */
	uint64_t aux_window_ns;	       /* AuxWindow=, 10s; 0: all */
	uint64_t block_bytes;	       /* BlockSize=, 1M */
	unsigned queue_depth;	       /* QueueDepth=, 8 */
	struct fr_retention retention; /* MaxUse= KeepFree= MaxFiles= MaxAge= */
	bool keep_failed;	       /* KeepFailed=, yes */
	uint64_t cache_bytes;	       /* CacheObjects=, no; 0: no cache */
	uint64_t cache_object_bytes;   /* CacheObjectMax=, 256M */
	/* [Triggers], and the sections [Trigger NAME] in the order of their first lines */
	struct fr_triggers_config triggers;
	uint64_t switch_limit_ns; /* SwitchLimit=, 10min; 0: no limit */
	struct fr_trigger_config *trigger;
	size_t n_trigger;
	/* The sections [Ring NAME], in the order of their first lines, and the ring of their side-band. */
	struct fr_ring_config *ring;
	size_t n_ring;
	uint64_t sideband_ring_bytes; /* SidebandRing=, auto; 0: auto */

	struct fr_fleet_config fleet; /* [Fleet] */

	size_t bytes_read;  /* bytes of all files */
	struct fr_buf text; /* the lines of all files, without comments: saved for the next instance */

	/* Command line only */
	pid_t *pids; /* -p */
	size_t n_pids;
	char **command;	       /* the part of main()'s argv after "--"; NULL: there is no command */
	bool no_default_event; /* events are named for other rings only, on the command line */
	bool all_cpus;	       /* -a: record the whole machine and not only the command */
	bool is_personal; /* this process is not the service: only triggers that the command line names are
			     armed */
};

/* Sets C to the default of each key. */
void fr_config_init(struct fr_config *c);
/* Frees the members of C. C may be all zeros. */
void fr_config_deinit(struct fr_config *c);

/* Reads the files that fr_config_files() lists for PATH into C. If a key has several lines, the last line
   sets the value. If the value is a list, each line adds to the list. This function can wait for a file
   system. Returns 0; -ENOMEM; -EINVAL if a line is bad, with "file:line: …" in D; or another negative errno,
   with a message in D. */
int fr_config_load(struct fr_config *c, const char *path, struct fr_diag *d);

/* Lists the files of the configuration in the order in which they are read. If PATH is not NULL, these are
   the file PATH, and then the files PATH.d/ *.conf, sorted by name. If PATH is NULL, these are the file
   /etc/flightrec/flightrecd.conf, if it exists, and then the files *.conf of the directories
   flightrecd.conf.d/ in /etc/flightrec, /run/flightrec and /usr/lib/flightrec, sorted by name in one list. If
   several of these directories have a file of the same name, only the file in the first of these directories
   is in the list. NULL ends the array *RET; the caller frees the array and its strings. Returns 0; or a
   negative errno, with a message in D. */
int fr_config_files(const char *path, char ***ret, struct fr_diag *d);

/* Returns true if events of tasks are opened, which follow the tasks to every CPU; false if events of CPUs
   are opened. */
static inline bool fr_config_follows_tasks(const struct fr_config *c)
{
	return c->n_pids || (c->command && !c->all_cpus);
}

/* Returns the section [Trigger NAME], borrowed until a section is added; or NULL if there is no such
   section. */
const struct fr_trigger_config *fr_config_find_trigger(const struct fr_config *c, const char *name);

/* Returns the number of the ring of a section of C, as in fr_config_event.ring. */
unsigned fr_config_ring_number(const struct fr_config *c, const struct fr_ring_config *ring);

/* Assigns VALUE to the key NAME of SECTION. If VALUE is "", the function assigns the default of the key, or
   resets a key that has no default. ORIGIN says where VALUE is set: "file:line" or an option. Returns 0;
   -ENOMEM; or -EINVAL with a message in D that begins with ORIGIN. */
int fr_config_set(struct fr_config *c, const char *section, const char *name, const char *value,
	const char *origin, struct fr_diag *d);

/* Returns whether the ring of [Recorder] records the default event, because no events are named for it. */
/* Returns the level of zstd for RING: its CompressionLevel=, or that of [Recorder]. */
int fr_config_ring_level(const struct fr_config *c, const struct fr_ring_config *ring);
bool fr_config_has_default_event(const struct fr_config *c);

/* Adds the events that c->events[i] names, with their filter, to RET. Returns 0; or a negative errno, with a
   message in D that begins with the origin. */
int fr_config_parse_event(const struct fr_config *c, size_t i, struct fr_event_list *ret, struct fr_diag *d);

extern const struct fr_command_line fr_flightrecd_command_line;

/* Reads the file and then the options of argv into C. The caller has set C by fr_config_init() and has not
   changed C since. If there is a command, the default file is not read, the directory is "." and there is no
   control socket, unless an option says otherwise. This function can be called again with the same argv and
   another C, on any thread. It can wait for a file system. Returns 0; 1 if an option like --help has printed
   its text; or a negative errno, with a message in D. */
int fr_options_parse(struct fr_config *c, int argc, char *argv[], struct fr_diag *d);

/* Checks the configuration as a whole: limits of sizes, and keys that exclude each other. Returns 0; or
   -EINVAL, with a message in D. */
int fr_config_check(const struct fr_config *c, struct fr_diag *d);
