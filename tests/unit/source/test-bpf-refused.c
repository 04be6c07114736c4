// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of BPF objects, files and settings that are refused, and of the messages. */
#include "bpf_test.h"
#include "base/file.h"
#include "source/bpf_log.h"
#include "source/bpf_object.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

static char *verifier_log;

static void keep_log(void *ctx, const char *text)
{
	free(verifier_log);
	verifier_log = strdup(text);
}

/* Checks that H is refused with CODE and WORDS, and that nothing is written to standard error. */
static void check_refused_quietly(struct heard *h, int code, const char *words)
{
	_cleanup_close_ int fd = memfd_create("stderr", MFD_CLOEXEC);
	int saved = dup(STDERR_FILENO);

	fflush(stderr);
	dup2(fd, STDERR_FILENO);
	heard_refused(h, code, words);
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
}

TEST(bad_objects_are_refused_with_a_reason)
{
	static const struct {
		const char *path;
		int code;
		const char *what;
	} bad[] = {
		{OBJECT("bad-verifier"), -EINVAL,
			"verifier rejects the program 'reads_anywhere' of " OBJECT("bad-verifier") ": R"},
		{OBJECT("bad-verifier"), -EINVAL, "at `"},
		{OBJECT("bad-huge-map"), -E2BIG, "with 'everybody' of 2147483648 entries"},
		{OBJECT("bad-version"), -ENOEXEC, "version 99 of the trigger ABI, but this is version 1"},
		{OBJECT("bad-map"), -ENOEXEC, "has no map 'flightrec_counters'"},
		{OBJECT("bad-map-type"), -ENOEXEC, "the map 'flightrec_events' of"},
		{OBJECT("bad-stranger"), -ENOEXEC, "it has no global 'flightrec_abi'"},
		{OBJECT("bad-no-program"), -ENOEXEC, "has no program"},
		{OBJECT("bad-section"), -EINVAL, "SEC(\"whatever\")"},
		{OBJECT("bad-attach"), -EINVAL, "cannot be attached by its section SEC(\"perf_event\")"},
		{OBJECT("bad-tracepoint"), -EOPNOTSUPP,
			"this kernel has no tracepoint 'flightrec_no_such_tracepoint', which the program "
			"'program' of"},
		{OBJECT("bad-classic-tracepoint"), -EOPNOTSUPP, "tracepoint 'flightrec:no_such_tracepoint'"},
		{OBJECT("bad-endian"), -ENOEXEC, "is for machines with the other byte order"},
		{"/proc/self/exe", -ENOEXEC, "is an ELF file, but not a BPF object"},
		{"/etc/passwd", -ENOEXEC, "is not an ELF file"},
		{"/nonexistent/x.bpf.o", -ENOENT, "/nonexistent/x.bpf.o: No such file"},
		{"/tmp", -EINVAL, "is not a regular file"},
		{"/dev/null", -EINVAL, "is not a regular file"},
	};
	_cleanup_heard_ struct heard h = {0};

	need_bpf();
	init_program(&h, "");
	h.env.log = keep_log;
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		h.config.subject = (char *)bad[i].path;
		check_refused_quietly(&h, bad[i].code, bad[i].what);
	}
	assert_non_null(verifier_log);
	assert_non_null(strstr(verifier_log, "BEGIN PROG LOAD LOG"));
	free(verifier_log);
}

/* Returns the head of the section .BTF of an object. */
static struct btf_header *btf_of(const struct fr_buf *object)
{
	struct btf_header *h = memmem(object->data, object->len, "\x9f\xeb\x01", 3);

	assert_non_null(h);
	assert_true((uint8_t *)h + h->hdr_len + h->type_off + h->type_len <= object->data + object->len);
	return h;
}

/* Truncated objects and objects with changed bytes are opened or refused, without harm. */
TEST(damaged_objects_do_no_harm)
{
	_cleanup_buf_ struct fr_buf good = {0};
	unsigned opened = 0, refused = 0;
	const struct btf_header *btf;
	size_t types;

	need_bpf();
	assert_int_equal(fr_read_file(AT_FDCWD, OBJECT("getppid"), FR_BPF_FILE_MAX, &good), 0);
	btf = btf_of(&good);
	types = (size_t)((const uint8_t *)btf - good.data) + btf->hdr_len + btf->type_off;
	srandom(1);
	for (int i = 0; i < 3000; i++) {
		const bool truncate = i % 3 == 0, in_types = i % 3 == 1;
		const size_t at =
			in_types ? types + (size_t)random() % btf->type_len : (size_t)random() % good.len;
		const size_t n = truncate ? good.len * (size_t)i / 3000 : good.len;
		/* memory of exactly the size of the object, so that a sanitizer finds a read after its end */
		_cleanup_free_ uint8_t *bytes = malloc(FR_MAX(n, (size_t)1));
		struct fr_bpf_object *o = NULL;
		struct fr_diag d = {0};
		int r;

		memcpy(bytes, good.data, n);
		if (!truncate)
			bytes[at] = (uint8_t)random();
		r = fr_bpf_object_open(bytes, n, "damaged.bpf.o", false, &o, &d);
		assert_true(truncate ? r < 0 : r <= 0);
		assert_true(r == 0 || (!o && d.what[0]));
		opened += r == 0;
		refused += r < 0;
		fr_bpf_object_free(o);
	}
	assert_true(opened > 100 && refused > 1100);
}

/* Each kind of reference is checked. libbpf 1.1 would crash on some of these objects, or not end. */
TEST(invalid_references_in_btf_are_refused)
{
#define MISSING 0xfffff /* no such type, and no such name */
#define ITSELF 0	/* the number of the type that is changed */
#define OF_TYPE(member) offsetof(struct btf_type, member)
#define OF_FIRST(type, member) (sizeof(struct btf_type) + offsetof(struct type, member))
	static const struct {
		unsigned kind;
		size_t offset; /* of the reference, in the type with the first of its members */
		__u32 value;
	} cases[] = {
		{BTF_KIND_INT, OF_TYPE(name_off), MISSING},
		{BTF_KIND_PTR, OF_TYPE(type), MISSING},
		{BTF_KIND_CONST, OF_TYPE(type), MISSING},
		{BTF_KIND_TYPEDEF, OF_TYPE(type), MISSING},
		{BTF_KIND_TYPEDEF, OF_TYPE(type), ITSELF},
		{BTF_KIND_STRUCT, OF_FIRST(btf_member, type), MISSING},
		{BTF_KIND_STRUCT, OF_FIRST(btf_member, name_off), MISSING},
		{BTF_KIND_ENUM, OF_FIRST(btf_enum, name_off), MISSING},
		{BTF_KIND_ARRAY, OF_FIRST(btf_array, type), MISSING},
		{BTF_KIND_ARRAY, OF_FIRST(btf_array, index_type), MISSING},
		{BTF_KIND_FUNC_PROTO, OF_TYPE(type), MISSING},
		{BTF_KIND_FUNC_PROTO, OF_FIRST(btf_param, type), MISSING},
		{BTF_KIND_FUNC_PROTO, OF_FIRST(btf_param, name_off), MISSING},
		{BTF_KIND_FUNC, OF_TYPE(type), MISSING},
		{BTF_KIND_FUNC, OF_TYPE(type), ITSELF}, /* which is not a prototype */
		{BTF_KIND_VAR, OF_TYPE(type), MISSING},
		{BTF_KIND_DATASEC, OF_FIRST(btf_var_secinfo, type), MISSING},
	};
	_cleanup_buf_ struct fr_buf good = {0};
	struct btf_header *h;
	struct btf *btf;

	need_bpf();
	assert_int_equal(fr_read_file(AT_FDCWD, OBJECT("getppid"), FR_BPF_FILE_MAX, &good), 0);
	h = btf_of(&good);
	btf = btf__new(h, h->hdr_len + h->str_off + h->str_len);
	assert_non_null(btf);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		uint8_t *types = (uint8_t *)h + h->hdr_len + h->type_off;
		struct fr_bpf_object *o = NULL;
		struct fr_diag d = {0};
		__u32 id = 1, saved, value;
		uint8_t *reference;

		while (btf_kind(btf__type_by_id(btf, id)) != cases[i].kind)
			id++;
		reference = types + cases[i].offset +
			    ((const uint8_t *)btf__type_by_id(btf, id) -
				    (const uint8_t *)btf__type_by_id(btf, 1));
		value = cases[i].value == ITSELF ? id : cases[i].value;
		memcpy(&saved, reference, sizeof(saved));
		memcpy(reference, &value, sizeof(value));
		assert_int_equal(fr_bpf_object_open(good.data, good.len, "x.bpf.o", false, &o, &d), -ENOEXEC);
		assert_string_equal(d.what, "x.bpf.o is damaged: a type in its BTF has an invalid reference");
		memcpy(reference, &saved, sizeof(saved));
	}
	btf__free(btf);
}

TEST(bad_files_are_refused)
{
	static const struct {
		mode_t mode;
		uid_t uid;
		gid_t gid;
		off_t size; /* 0: do not change the size */
		int code;
		const char *words;
	} cases[] = {
		{0646, 0, 0, 0, -EPERM, "can be written by everybody"},
		{0664, 0, 65534, 0, -EPERM, "can be written by the group 65534"},
		{0644, 65534, 65534, 0, -EPERM, "belongs to the user 65534, not to root"},
		{0644, 0, 0, FR_BPF_FILE_MAX + 1, -EFBIG, "is too large for a BPF object"},
		{0644, 0, 0, 40, -ENOEXEC, "is truncated: it has 40 bytes"},
		{0644, 0, 0, 4000, -ENOEXEC, "is not a BPF object that can be read"},
	};
	char path[] = "/tmp/flightrec-test-object.XXXXXX";
	_cleanup_buf_ struct fr_buf b = {0};
	_cleanup_heard_ struct heard h = {0};
	int fd;

	need_bpf();
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(fr_read_file(AT_FDCWD, OBJECT("getppid"), FR_BPF_FILE_MAX, &b), 0);
	assert_int_equal(fr_write_all(fd, b.data, b.len), 0);
	fchmod(fd, 0644);
	init_program(&h, path);
	heard_arm(&h);
	heard_disarm(&h);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		fchmod(fd, cases[i].mode);
		assert_int_equal(fchown(fd, cases[i].uid, cases[i].gid), 0);
		if (cases[i].size)
			assert_int_equal(ftruncate(fd, cases[i].size), 0);
		heard_refused(&h, cases[i].code, cases[i].words);
	}
	close(fd);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	heard_refused(&h, -EINVAL, "is not a regular file");
	unlink(path);
}

static void open_without_rights(void *ctx)
{
	struct fr_diag d = {0};
	struct heard h;

	init_program(&h, OBJECT("getppid"));
	if (setresuid(65534, 65534, 65534) < 0)
		_exit(2);
	if (heard_open(&h, &h.config, NULL, &h.source, &d) != -EPERM)
		_exit(3);
	_exit(strstr(d.what, "CAP_BPF and CAP_PERFMON is missing") ? 0 : 4);
}

TEST(missing_capabilities_are_named)
{
	struct child c;

	need_bpf();
	c = child_new(NULL, open_without_rights, NULL);
	end_well(&c);
}

TEST(bad_settings_are_refused)
{
	static const struct {
		const char *set, *what;
	} bad[] = {
		{"sizes=1", "did you mean size?"},
		{"nothing_like_it=1", "it has: "},
		{"size", "does not name a global and its value"},
		{"=1", "does not name a global and its value"},
		{"size=", "is not a number for 'size', 32 bits"},
		{"size=1x", "is not a number"},
		{"size=-1", "does not fit into 'size', 32 bits"},
		{"size=4294967296", "does not fit"},
		{"tiny=128", "does not fit into 'tiny', signed 8 bits"},
		{"tiny=-129", "does not fit"},
		{"flag=2", "yes or no"},
		{"word=12345678", "takes 7 characters"},
		{"several=1", "neither a number nor a string"},
		{"flightrec_threshold=1", "Set= cannot set"},
	};
	_cleanup_heard_ struct heard h = {0};

	need_bpf();
	init_program(&h, OBJECT("getppid"));
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++) {
		h.config.set = (char *)bad[i].set;
		h.config.set_len = strlen(bad[i].set) + 1;
		heard_refused(&h, -EINVAL, bad[i].what);
	}
	h.config.set = NULL;
	h.config.set_len = 0;
	h.config.threshold = (char *)"much";
	heard_refused(&h, -EINVAL, "Threshold=much");
	h.config.threshold = NULL;
	h.config.cgroup = (char *)"/no/such.slice";
	heard_refused(&h, -ENOENT, "cannot find the control group /no/such.slice");
	h.config.cgroup = NULL;
	h.config.syscalls = (char *)"openat";
	heard_refused(&h, -EINVAL, "Syscall= has no effect");
	h.config.syscalls = NULL;
	h.config.subject = (char *)OBJECT("twins");
	h.config.interval_ns = 1;
	heard_refused(&h, -EINVAL, "Interval= has no effect");
}

/* Set= writes the values into the program's memory. */
TEST(globals_of_all_types_can_be_set)
{
	static const struct {
		const char *assignment, *name;
		size_t size;
		int64_t value;
	} cases[] = {
		{"tiny=-128", "tiny", 1, -128},
		{"shorter=32767", "shorter", 2, 32767},
		{"number=-0x80000000", "number", 4, INT32_MIN},
		{"huge=-9223372036854775808", "huge", 8, INT64_MIN},
		{"colour=1", "colour", 4, 1},
		{"flag=yes", "flag", 1, 1},
	};
	_cleanup_buf_ struct fr_buf b = {0};
	struct fr_bpf_object *o;
	struct fr_diag d = {0};
	char word[8];

	assert_int_equal(fr_bpf_file_read(OBJECT("getppid"), &b, &d), 0);
	assert_int_equal(fr_bpf_object_open(b.data, b.len, "x", false, &o, &d), 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		uint8_t value[8];

		assert_int_equal(fr_bpf_object_assign(o, cases[i].assignment, &d), 0);
		assert_int_equal(fr_bpf_object_get(o, cases[i].name, value, cases[i].size), 0);
		assert_memory_equal(value, &cases[i].value, cases[i].size); /* on little endian */
	}
	assert_int_equal(fr_bpf_object_assign(o, "word=a=b c", &d), 0);
	assert_int_equal(fr_bpf_object_get(o, "word", word, 8), 0);
	assert_int_equal(fr_bpf_object_get(o, "word", word, 4), -EINVAL);
	assert_string_equal(word, "a=b c");
	fr_bpf_object_free(o);
}

/* `flightrecctl verify-config` uses these checks. They do not arm anything, and do not depend on the user and
   the machine. */
TEST(check_does_not_ask_this_machine)
{
	static const struct {
		enum fr_trigger_kind kind;
		const char *subject;
		int code;
	} cases[] = {
		{FR_TRIGGER_PROGRAM, OBJECT("getppid"), 0},
		{FR_TRIGGER_PROGRAM, OBJECT("bad-tracepoint"), 0},
		{FR_TRIGGER_PROGRAM, OBJECT("bad-version"), -ENOEXEC},
		{FR_TRIGGER_PROBE, "no-such-probe", -EINVAL},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_trigger_config c = heard_config(cases[i].kind);
		struct fr_diag d = {0};

		c.subject = (char *)cases[i].subject;
		assert_int_equal(fr_source_bpf.check(&c, &d), cases[i].code);
		assert_true(d.code == 0 || strstr(d.what, c.subject));
	}
}

TEST(verifier_log_is_summarized)
{
	static const char log[] = "libbpf: prog 'x': BPF program load failed: Permission denied\n"
				  "libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n"
				  "0: R1=ctx() R10=fp0\n"
				  "; int x(void *ctx) @ x.bpf.c:3\n"
				  "0: (79) r1 = *(u64 *)(r1 +0)\n"
				  "; return *p; @ x.bpf.c:5\n"
				  "1: (61) r0 = *(u32 *)(r1 +0)\n"
				  ";  @ x.bpf.c:0\n"
				  "R1 invalid mem access 'scalar'\n"
				  "processed 2 insns (limit 1000000) max_states_per_insn 0\n"
				  "-- END PROG LOAD LOG --\n"
				  "libbpf: prog 'x': failed to load: -13\n"
				  "libbpf: failed to load object 'flightrec'\n";
	struct fr_bpf_log_summary v;

	fr_bpf_log_summarize(log, &v);
	assert_string_equal(v.program, "x");
	assert_string_equal(v.reason, "R1 invalid mem access 'scalar'");
	assert_string_equal(v.source, "return *p; @ x.bpf.c:5");
	fr_bpf_log_summarize("libbpf: one\nlibbpf: map 'y': failed\n\n", &v);
	assert_string_equal(v.program, "");
	assert_string_equal(v.reason, "map 'y': failed");
	fr_bpf_log_summarize(NULL, &v);
	assert_string_equal(v.reason, "");
}
