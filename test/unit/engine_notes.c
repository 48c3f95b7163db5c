/* Notes beside the tables, and one moment of a table while others write it. */
#include "unit/engine_fixture.h"

struct note_commit {
    struct commit commit;
    struct fixture *fixture;
    const char *kind, *id, *text; /* text NULL: delete */
    bool was_there;
};

static void apply_note(struct commit *commit, struct batch *batch)
{
    struct note_commit *own = (struct note_commit *)commit;
    struct arena *arena = &own->fixture->arena;
    struct slice kind = slice_of(own->kind), id = slice_of(own->id);
    struct map found, none = {0};
    own->was_there = engine_note_in_batch(batch, arena, kind, id, &found);
    if (!own->text) {
        engine_note_delete(batch, arena, kind, id);
        return;
    }
    struct value text = text_value(own->text);
    struct map fields = map_with(arena, &none, SLICE("text"), &text);
    CHECK(engine_note_put(batch, arena, kind, id, &fields));
}

static bool note(struct fixture *fixture, const char *kind, const char *id, const char *text)
{
    struct note_commit own = {{.apply = apply_note}, fixture, kind, id, text, false};
    engine_commit(fixture->engine, &own.commit);
    return own.was_there;
}

static bool list_note(void *context, struct slice id, const struct map *fields)
{
    buf_printf(context, "%.*s=%.*s ", SLICE_ARG(id), SLICE_ARG(map_find(fields, SLICE("text"))->bytes));
    return true;
}

static void check_notes(struct fixture *fixture, const char *kind, const char *before, const char *expected)
{
    struct buf out = {0};
    CHECK(engine_notes(fixture->engine, &fixture->arena, slice_of(kind), slice_of(before), list_note, &out) ==
          ENGINE_OK);
    CHECK_TEXT(buf_view(&out), expected);
    buf_free(&out);
}

TEST(notes_are_kept_beside_the_tables)
{
    struct fixture fixture;
    struct slice names[4];
    struct map fields;
    bool more;
    fixture_open(&fixture, false);
    check_notes(&fixture, "export", "", "");
    CHECK(!engine_note_find(fixture.engine, &fixture.arena, SLICE("export"), SLICE("1"), &fields));
    CHECK(!note(&fixture, "export", "1", "a") && !note(&fixture, "export", "2", "b") &&
          !note(&fixture, "x", "1", "c"));
    CHECK(note(&fixture, "export", "1", "d"));
    check_notes(&fixture, "export", "", "2=b 1=d ");
    check_notes(&fixture, "export", "2", "1=d ");
    CHECK(engine_note_find(fixture.engine, &fixture.arena, SLICE("export"), SLICE("1"), &fields));
    CHECK_TEXT(map_find(&fields, SLICE("text"))->bytes, "d");
    CHECK(note(&fixture, "export", "1", NULL));
    check_notes(&fixture, "export", "", "2=b ");

    /* They are sound as all items are, and nobody sees their table. */
    struct check_report report;
    struct buf faults = {0};
    CHECK_INT(engine_table_names(fixture.engine, &fixture.arena, SLICE_NONE, 4, names, &more), 1);
    CHECK_TEXT(names[0], "things");
    CHECK(engine_check(fixture.store, &report, &faults) && report.faults == 0);
    CHECK_TEXT(buf_view(&faults), "");
    buf_free(&faults);
    fixture_close(&fixture);
}

struct moment {
    struct fixture *fixture;
    unsigned held, items;
};

static void moment_held(void *context)
{
    struct moment *moment = context;
    CHECK_INT(moment->items, 0);
    moment->held++;
    CHECK(fixture_put(moment->fixture, "a", "3", "late") && fixture_delete(moment->fixture, "a", "2"));
}

static bool moment_visit(void *context, struct slice key, struct slice encoded)
{
    (void)key;
    struct moment *moment = context;
    struct map item;
    CHECK(moment->held && item_decode(&moment->fixture->arena, encoded, &item));
    CHECK_TEXT(map_find(&item, SLICE("data"))->bytes, "early");
    moment->items++;
    return true;
}

TEST(a_view_has_nothing_that_is_written_behind_its_begin)
{
    struct fixture fixture;
    struct moment moment = {.fixture = &fixture};
    fixture_open(&fixture, false);
    struct items_view view = {.table = fixture.table,
                              .held = moment_held,
                              .visit = moment_visit,
                              .context = &moment};
    CHECK(fixture_put(&fixture, "a", "1", "early") && fixture_put(&fixture, "a", "2", "early"));
    CHECK(engine_items_view(fixture.engine, &view) == ENGINE_OK);
    CHECK_INT(moment.held, 1);
    CHECK_INT(moment.items, 2);
    CHECK(fixture_get(&fixture, "a", "3") && !fixture_get(&fixture, "a", "2"));
    fixture_close(&fixture);
}

/* ---- a table as it was ---- */

static bool count_past(void *context, struct slice key, struct slice value)
{
    (void)key, (void)value;
    ++*(unsigned *)context;
    return true;
}

TEST(a_past_table_has_the_items_counts_and_definition_of_its_store)
{
    struct fixture fixture;
    unsigned items = 0;
    fixture_open(&fixture, false);
    CHECK(fixture_put(&fixture, "a", "1", "early") && fixture_put(&fixture, "a", "2", "early"));
    struct store_snapshot *snapshot = store_snapshot_take(fixture.store);
    struct store *past = store_open_memory(NULL);
    store_snapshot_restore(past, snapshot);
    store_snapshot_free(snapshot);
    CHECK(fixture_put(&fixture, "a", "3", "late") && fixture_delete(&fixture, "a", "1"));
    CHECK(fixture_delete(&fixture, "a", "2"));
    struct table *table = engine_past_table(past, SLICE("things"));
    CHECK(table && !engine_past_table(past, SLICE("thing")));
    CHECK_TEXT(table->definition.id, "id");
    CHECK_INT(atomic_load(&table->counts->items), 2);
    CHECK(engine_past_items(past, table, count_past, &items) == ENGINE_OK);
    CHECK_INT(items, 2);
    engine_table_release(table);
    store_close(past);
    fixture_close(&fixture);
}
