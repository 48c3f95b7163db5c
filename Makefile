# Quipu. `make` builds build/quipu and libquipu; `make help` tells the rest.
#
# The rooms stand in ROOMS from the ground up, and below_ROOM names those it may call, upper ones first (test/rooms checks).

CC      ?= cc
PREFIX  ?= /usr/local
ROOMS   := base fiber net value store expr vector engine partiql api rest client backup transfer sandbox match calendar template velocity dynamo task func gateway trigger pattern react drive library deploy cli console web main

below_base   :=
below_fiber  := base
below_net    := base
below_value  := base
below_store  := base
below_expr   := value base
below_vector := base
below_engine := vector expr value store base
below_partiql := expr value base
below_api    := partiql engine vector expr value store base
below_rest   := base
below_client := base
below_transfer := backup client rest api partiql engine vector expr value store base
below_backup := rest store base
below_sandbox := base
below_match  := base
below_calendar := base
below_template := base
below_deploy := template calendar base
below_velocity := base
below_dynamo := transfer backup client rest api partiql engine vector expr value store base
below_task   := dynamo transfer backup client rest api partiql engine vector expr value store fiber base
below_func   := task dynamo calendar transfer backup client sandbox rest api partiql engine vector expr value store net fiber base
below_gateway := func task dynamo calendar velocity transfer backup client sandbox rest api partiql engine vector expr value store net fiber base
below_trigger := func task dynamo calendar match transfer backup client sandbox rest api partiql engine vector expr value store net fiber base
below_pattern := dynamo calendar match transfer backup client rest api partiql engine vector expr value store fiber base
below_react  := pattern trigger func task dynamo calendar match transfer backup client sandbox rest api partiql engine vector expr value store net fiber base
below_drive  := pattern func task dynamo calendar match transfer backup client sandbox rest api partiql engine vector expr value store net fiber base
below_library := pattern dynamo calendar match transfer backup client rest api partiql engine vector expr value store fiber base
below_cli    := deploy library pattern dynamo template calendar match transfer backup client rest api partiql engine vector expr value store fiber base
below_console := drive pattern trigger func task dynamo calendar match transfer backup client sandbox rest api partiql engine vector expr value store net fiber base
below_web    := console drive react pattern trigger gateway func task dynamo velocity calendar match transfer backup client sandbox rest api partiql engine vector expr value store net fiber base
below_main   := web console cli deploy library drive react pattern trigger gateway func task dynamo velocity template calendar match transfer backup client sandbox rest api partiql engine vector expr value store net fiber base

ifeq ($(SAN),address)
VARIANT := asan
SANFLAGS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
else ifeq ($(SAN),thread)
VARIANT := tsan
SANFLAGS := -fsanitize=thread
else ifdef DEBUG
VARIANT := debug
OPT ?= -O0 -g3
endif
# With a sanitizer -O1 and line numbers only: nobody measures such a binary, and it is compiled in half the time.
QUICK_OPT := -O1 -g1
OPT ?= $(if $(SAN),$(QUICK_OPT),-O2 -g)

B := build$(VARIANT:%=/%)
# One binary that needs only libc is linked of the same objects.
BINARY := $B$(if $(STATIC),/static)/quipu

WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla $(WERROR)
# Position-independent and hidden: the same objects go into the program and into libquipu, which shows only quipu_*.
override CFLAGS += -std=c17 -D_GNU_SOURCE -Isrc -Iinclude -fPIC -fvisibility=hidden $(OPT) $(WARNINGS) $(SANFLAGS) -pthread -MMD -MP
override LDFLAGS += $(SANFLAGS) -pthread

# libcurl is not among them: src/client/curl.h tells why it is loaded when a URL is opened.
DYNAMIC_LIBS := -lrocksdb -lssl -lcrypto -lxxhash -lzstd -lz -lm
# RocksDB is C++ and brings its compressors; everything but libc goes into the binary.
STATIC_LIBS  := -static-libgcc -Wl,-Bstatic -lrocksdb -lssl -lcrypto -lxxhash -lsnappy -llz4 -lzstd -lbz2 -lz -lgflags \
                -lstdc++ -Wl,-Bdynamic -lm
# The program reads templates, the library does not.
LIBS := $(if $(STATIC),$(subst -lrocksdb,-lyaml -lrocksdb,$(STATIC_LIBS)),-lyaml $(DYNAMIC_LIBS))

objects = $(patsubst src/%.c,$B/%.o,$(wildcard src/$1/*.c))
# The archives of a room and of all below it, upper ones first, as the linker wants them.
archives = $(patsubst %,$B/lib/%.a,$1 $(below_$1))

.PHONY: all check debug syntax test unit bench install clean help format
all: $(BINARY) $B/libquipu.a $B/libquipu.so

$(BINARY): $(call objects,main) $(filter-out %/main.a,$(call archives,main))
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

$B/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

# Programs for interpreters that are part of the binary (.incbin, which -MMD does not see).
$B/func/bootstrap.o build/fuzz/obj/func/bootstrap.o: $(wildcard src/func/bootstrap/*)

# The console's page: its files, compressed, as one table that src/console/page.c reads.
page_folders := src/console/page $(wildcard src/console/page/*/)
page_files := $(patsubst src/console/page/%,%,$(wildcard $(foreach end,html css js svg,$(addsuffix /*.$(end),$(page_folders:/=)))))
$(page_folders): ; # nothing makes a folder
$B/console/page/%.gz: src/console/page/%
	@mkdir -p $(@D)
	gzip -9nc $< > $@
$B/console/page_files.s: $(patsubst %,$B/console/page/%.gz,$(page_files)) $(page_folders) Makefile
	@mkdir -p $(@D)
	@{ echo '.section .note.GNU-stack,"",%progbits'; echo '.section .rodata'; \
	   echo '.hidden console_page_start'; echo '.globl console_page_start'; echo 'console_page_start:'; \
	   for name in $(sort $(page_files)); do \
	       printf '.long 2f-1f\n1: .ascii "%s"\n2: .long 4f-3f\n3: .incbin "$B/console/page/%s.gz"\n4:\n' $$name $$name; \
	   done; \
	   echo '.hidden console_page_end'; echo '.globl console_page_end'; echo 'console_page_end:'; } > $@
$B/console/page_files.o: $B/console/page_files.s
	$(CC) -c -o $@ $<
$B/lib/console.a: $B/console/page_files.o

define room_archive
$B/lib/$1.a: $(call objects,$1)
	@mkdir -p $$(@D)
	rm -f $$@; ar rcs $$@ $$^
endef
$(foreach room,$(ROOMS),$(eval $(call room_archive,$(room))))

# ---- the library: everything but the program and the server, showing only quipu_* ----
VERSION := $(shell sed -n 's/^\#define QUIPU_VERSION *"\(.*\)"/\1/p' include/quipu.h)
SONAME  := libquipu.so.$(firstword $(subst ., ,$(VERSION)))
library_objects := $(foreach room,library $(below_library),$(call objects,$(room)))

# One object whose hidden names have become its own, so that they meet nobody's where it is linked in.
$B/libquipu.a: $(library_objects)
	$(CC) -r -nostdlib -o $B/library/all.o $^
	objcopy --localize-hidden $B/library/all.o
	rm -f $@; ar rcs $@ $B/library/all.o

$B/libquipu.so: $(library_objects)
	$(CC) -shared $(LDFLAGS) -Wl,-soname,$(SONAME) -Wl,-z,defs -o $@ $^ $(DYNAMIC_LIBS)

# ---- unit tests: test/unit/<room>_<what>.c, one binary a room ----
# What a room's tests use besides it: those of the remote door and of the library call a server. Both sides use the same
# rooms, so no order of the archives would do: they are a group.
beside_client  := net
beside_dynamo  := web $(below_web)
beside_library := web $(below_web)
# Functions that a room's tests put their own in front of.
wraps_store := -Wl,--wrap=rocksdb_write,--wrap=rocksdb_options_set_max_bytes_for_level_base
UNIT_ROOMS := $(filter $(ROOMS),$(sort $(foreach f,$(wildcard test/unit/*_*.c),$(firstword $(subst _, ,$(notdir $f))))))

$B/test/%.o: test/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Itest -c -o $@ $<

define room_unit
$B/unit/$1: $(patsubst test/%.c,$B/test/%.o,$(wildcard test/unit/$1_*.c)) $B/test/unit/runner.o $(patsubst %,$B/lib/%.a,$(beside_$1)) $(filter-out %/main.a,$(call archives,$1))
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS) $$(wraps_$1) -o $$@ -Wl,--start-group $$^ -Wl,--end-group $$(LIBS)
unit-$1: $B/unit/$1
	$B/unit/$1
.PHONY: unit-$1
endef
$(foreach room,$(UNIT_ROOMS),$(eval $(call room_unit,$(room))))
unit-binaries: $(addprefix $B/unit/,$(UNIT_ROOMS))
unit: $(addprefix unit-,$(UNIT_ROOMS))

# ---- power cuts: test/cut ----
# `cut` opens its journals with small segments.
$B/cut/cut: $(patsubst test/%.c,$B/test/%.o,$(filter-out test/cut/record.c,$(wildcard test/cut/*.c))) $(call archives,backup)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,--wrap=journal_open -o $@ $^ $(DYNAMIC_LIBS)
$B/cut/record.so: $B/test/cut/record.o
	@mkdir -p $(@D)
	$(CC) -shared -o $@ $^ -ldl
cut: $B/cut/cut $B/cut/record.so
.PHONY: cut

# ---- fuzz drivers: test/fuzz/<room>_<what>.c, built with clang's libFuzzer ----
FUZZ_CC ?= clang-14
FUZZERS := $(patsubst test/fuzz/%.c,build/fuzz/%,$(wildcard test/fuzz/*.c))
build/fuzz/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(FUZZ_CC) $(filter-out -fsanitize=%,$(CFLAGS)) $(QUICK_OPT) -fsanitize=fuzzer-no-link,address,undefined -c -o $@ $<
define fuzz_binary
build/fuzz/$1: test/fuzz/$1.c $(foreach r,$(firstword $(subst _, ,$1)) $(below_$(firstword $(subst _, ,$1))),$(patsubst src/%.c,build/fuzz/obj/%.o,$(wildcard src/$r/*.c)))
	@mkdir -p $$(@D)
	$$(FUZZ_CC) $$(filter-out -fsanitize=% -MMD -MP,$$(CFLAGS)) -Werror -Itest -fsanitize=fuzzer,address,undefined -o $$@ $$^ -lyaml $$(DYNAMIC_LIBS)
endef
$(foreach f,$(notdir $(basename $(wildcard test/fuzz/*.c))),$(eval $(call fuzz_binary,$f)))
fuzzers: $(FUZZERS)
.PHONY: fuzzers unit-binaries

# ---- the load generator of the benchmark ----
build/load: bench/load.c bench/operations.h $B/lib/base.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.a,$^)

# ---- and its comparison of commit logs ----
build/commits: bench/commits.c $B/lib/store.a $B/lib/base.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c %.a,$^) $(DYNAMIC_LIBS)

# ---- and a disk that is slower than this machine's ----
build/slow_disk.so: bench/slow_disk.c
	$(CC) $(CFLAGS) -fvisibility=default -shared -o $@ $<

# ---- what to run ----
# Before every commit: some seconds to two minutes.
check:
	script/test rooms build smoke

test:
	script/test

debug:
	$(MAKE) DEBUG=1 all

# All warnings of a compiler without its objects.
syntax:
	@printf '%s\n' $(wildcard src/*/*.c) | xargs -P $$(nproc) -n 8 \
	    $(CC) $(filter-out -MMD -MP,$(CFLAGS)) -fsyntax-only

# For editors and clang-tidy: how each file is compiled.
compile_commands.json: Makefile $(wildcard src/*/*.c test/unit/*.c)
	@{ echo '['; comma=; for file in $(filter %.c,$^); do \
	    printf '%s{"directory":"%s","file":"%s","command":"%s"}' "$$comma" '$(CURDIR)' "$$file" \
	        '$(CC) $(filter-out -MMD -MP,$(CFLAGS)) -Itest -c '"$$file"; \
	    comma=$$(printf ',\n.'); comma=$${comma%.}; \
	done; echo; echo ']'; } > $@

bench: $(BINARY) build/load build/commits build/slow_disk.so
	bench/run
	bench/streams
	bench/triggers
	bench/vectors
	node bench/console.mjs

SHARE = $(DESTDIR)$(PREFIX)/share
install: all
	install -D -m 755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/quipu
	install -D -m 644 include/quipu.h $(DESTDIR)$(PREFIX)/include/quipu.h
	install -D -m 644 $B/libquipu.a $(DESTDIR)$(PREFIX)/lib/libquipu.a
	install -D -m 755 $B/libquipu.so $(DESTDIR)$(PREFIX)/lib/libquipu.so.$(VERSION)
	ln -sf libquipu.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libquipu.so
	install -d $(DESTDIR)$(PREFIX)/lib/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(DYNAMIC_LIBS)|' include/quipu.pc.in \
	    > $(DESTDIR)$(PREFIX)/lib/pkgconfig/quipu.pc
	install -D -m 644 doc/quipu.1 $(DESTDIR)$(PREFIX)/share/man/man1/quipu.1
	install -D -m 644 doc/quipu.3 $(DESTDIR)$(PREFIX)/share/man/man3/quipu.3
	install -d $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	$(BINARY) completion bash > $(SHARE)/bash-completion/completions/quipu
	$(BINARY) completion zsh > $(SHARE)/zsh/site-functions/_quipu
	$(BINARY) completion fish > $(SHARE)/fish/vendor_completions.d/quipu.fish

clean:
	rm -rf build

format:
	clang-format-14 -i src/*/*.[ch] test/unit/*.[ch] test/cut/*.[ch] test/fuzz/*.c bench/*.c

help:
	@echo 'make                 build build/quipu and the library: build/libquipu.a, build/libquipu.so'
	@echo 'make check           before every commit: rooms, build, unit tests, one smoke test of the binary'
	@echo 'make test            install what is missing and run every test (script/test)'
	@echo 'make unit            the unit tests only; make unit-ROOM for one room'
	@echo 'make bench           the benchmark with its peers'
	@echo 'make install         to DESTDIR/PREFIX (/usr/local)'
	@echo 'make SAN=address|thread ...   with sanitizers, under build/asan, build/tsan'
	@echo 'make STATIC=1        one binary that needs only libc: build/static/quipu'
	@echo 'make debug           -O0 -g3, under build/debug'
	@echo 'make syntax          all warnings of the compiler (CC=clang-14) without objects'
	@echo 'make compile_commands.json    for editors and clang-tidy'
	@echo 'make format          clang-format'
	@echo 'make clean'

-include $(shell find build -name '*.d' 2>/dev/null)
