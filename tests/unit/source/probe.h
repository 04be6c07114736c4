/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The fixture of the tests of probes. A child causes a real anomaly. Each test runs with the kernel's BTF and
   without it. */

#include "heard.h"
#include "../../load/anomaly.h"

struct scene {
	struct heard h;
	struct child c;
	int status; /* the status with which the child must end, in the format of waitpid() */
};

static inline void scene_deinit(struct scene *s)
{
	heard_deinit(&s->h);
}
#define _cleanup_scene_ __attribute__((cleanup(scene_deinit)))

/* Prepares PROBE for a child, which will call RUN. If CLASSIC is true, the probe must not use BTF. */
static inline void scene_init(struct scene *s, const char *probe, const char *threshold,
	void (*run)(void *ctx), void *ctx, bool classic)
{
	*s = (struct scene){0};
	heard_init(&s->h, FR_TRIGGER_PROBE);
	s->h.env.bpf_classic = classic;
	s->h.config.subject = (char *)probe;
	s->h.config.threshold = (char *)threshold;
	s->h.config.cooldown_ns = 0;
	s->c = child_new(NULL, run, ctx);
	s->h.config.pid = s->c.pid;
}

/* Arms the probe and lets the child run to its end. Returns false and prints why if the probe cannot be
   armed, or the child cannot do what it has to do. */
static inline bool play(struct scene *s)
{
	bool armed = heard_try_arm(&s->h);

	child_end(&s->c, armed);
	if (!armed || s->c.status == FR_ANOMALY_SKIP << 8)
		return false;
	heard_run(&s->h, 100, 0);
	assert_int_equal(s->c.status & ~0x80, s->status); /* without the bit for "core dumped" */
	return true;
}

/* Begins a test that runs with BTF and without it. If the test cannot run, its body prints why and returns
   false. */
#define PROBE_TEST(name)                                                                                     \
	static bool probe_##name(bool classic);                                                              \
	TEST(name)                                                                                           \
	{                                                                                                    \
		if (!probe_##name(false))                                                                    \
			skip();                                                                              \
	}                                                                                                    \
	TEST(name##_without_btf)                                                                             \
	{                                                                                                    \
		if (!probe_##name(true))                                                                     \
			skip();                                                                              \
	}                                                                                                    \
	static bool probe_##name(bool classic)
