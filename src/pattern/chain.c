/* Chains of pages; see chain.h. */
#include "pattern/chain.h"

#include <stdlib.h>

#include "base/fail.h"
#include "pattern/sweep.h"
#include "pattern/tokens.h"

#define ENTRY_SLACK    40  /* of a page's request for each entry, besides its value, token and mark */
#define TOKENS_AT_ONCE 100 /* that one BatchGetItem asks for */
#define PAGES_AT_ONCE                                                                                        \
    8 /* that a reader's first Query reads; with their usual size it is as much as a reply holds */
#define RECALLED_MOST_MS (CHAIN_LATE_S * 1000ll / 4) /* an end that is older is not gone by (U6) */
#define RACES_IN_PLACE   3 /* lost, before the end is asked for instead of going from page to page */

enum {
    PAGE_FIRST,
    PAGE_COUNT,
    PAGE_TIME,
    PAGE_ID,
    PAGE_ENTRIES,
    PAGE_TOKENS,
    PAGE_SEAL,
    PAGE_NOTE,
    PAGE_MEMBERS
};
static const char *const page_names[PAGE_MEMBERS] = {"first", "n", "t", "i", "e", "k", "s", "c"};

/* ---- the end ---- */

/* The end behind this page; answers the page's id. */
static int64_t end_take(struct flow *flow, struct chain_end *end, struct slice item)
{
    struct slice page[PAGE_MEMBERS];
    raw_pick(flow->arena, item, page_names, page, PAGE_MEMBERS);
    int64_t first = attribute_int(flow->arena, page[PAGE_FIRST], 0);
    *end = (struct chain_end){.next = first + attribute_int(flow->arena, page[PAGE_COUNT], 0),
                              .first = first,
                              .time_ms = attribute_int(flow->arena, page[PAGE_TIME], 0),
                              .is_sealed = page[PAGE_SEAL].data != NULL,
                              .seal = page[PAGE_SEAL],
                              .note = page[PAGE_NOTE],
                              .tokens = attribute_content(flow->arena, page[PAGE_TOKENS])};
    return attribute_int(flow->arena, page[PAGE_ID], 0);
}

void chain_read_end(struct flow *flow, const struct chain *chain, struct chain_end *end)
{
    task_query(flow, "#chain = :chain", QUERY_LAST READ_FRESH, "':chain':%S", chain->table, chain->key);
    struct slice page = raw_first(flow->arena, flow_items(flow));
    *end = (struct chain_end){.next = 1};
    if (page.data) end_take(flow, end, page);
}

struct remembered_end {
    int64_t next, first, time_ms, now_ms;
};

static uint64_t end_topic(const struct chain *chain)
{
    return flow_topic("chain", chain->key, slice_of(chain->table->name));
}

/* The tokens of the last page have been written down. */
static void end_remember(struct flow *flow, const struct chain *chain, const struct chain_end *end)
{
    struct remembered_end this = {end->next, end->first, end->time_ms, flow->now_ms};
    if (end->is_sealed)
        flow_forget(flow, end_topic(chain));
    else
        flow_remember(flow, end_topic(chain), (struct slice){(const char *)&this, sizeof this});
}

bool chain_recall_end(struct flow *flow, const struct chain *chain, struct chain_end *end)
{
    struct slice text = flow_recall(flow, end_topic(chain));
    struct remembered_end last;
    if (text.len != sizeof last) return false;
    memcpy(&last, text.data, sizeof last);
    *end = (struct chain_end){.next = last.next, .first = last.first, .time_ms = last.time_ms};
    int64_t most_ms = chain->recalled_ms ? chain->recalled_ms : RECALLED_MOST_MS;
    return flow->now_ms >= last.now_ms && flow->now_ms - last.now_ms < most_ms;
}

void chain_forget_end(struct flow *flow, const struct chain *chain)
{
    flow_forget(flow, end_topic(chain));
}

bool chain_guess_end(struct flow *flow, const struct chain *chain, struct chain_end *end)
{
    if (chain_recall_end(flow, chain, end)) return true;
    chain_read_end(flow, chain, end);
    return false;
}

/* ---- tokens ---- */

static bool is_left(const struct chain_entry *entry)
{
    return !entry->number && !entry->twin && !(entry->together && entry->together->is_refused);
}

static int by_token(const void *a, const void *b)
{
    const struct chain_entry *x = *(struct chain_entry *const *)a, *y = *(struct chain_entry *const *)b;
    int order = slice_compare(x->token, y->token);
    return order ? order : (x > y) - (x < y);
}

/* Notes which entries have the token of an earlier one; answers how many have one of their own. */
static size_t twins_find(struct flow *flow, struct chain_entry *entries, size_t count)
{
    struct chain_entry **sorted = arena_array(flow->arena, struct chain_entry *, count);
    size_t tokens = 0, own = 0;
    for (size_t i = 0; i < count; i++) {
        entries[i].twin = NULL;
        if (entries[i].token.data && !entries[i].number) sorted[tokens++] = &entries[i];
    }
    qsort(sorted, tokens, sizeof *sorted, by_token);
    for (size_t i = 0; i < tokens; i++) {
        bool is_twin = own && slice_equal(sorted[own - 1]->token, sorted[i]->token);
        if (is_twin)
            sorted[i]->twin = sorted[own - 1];
        else
            sorted[own++] = sorted[i];
    }
    return own;
}

static void repeat_take(struct flow *flow, struct chain_entry *entry, struct slice item)
{
    entry->number = item_int(flow->arena, item, "number", 0);
    entry->first_mark = item_text(flow->arena, item, "mark");
    entry->chain = item_text(flow->arena, item, "chain");
    entry->is_repeated = true;
}

/* Of the entries with these tokens, TOKENS_AT_ONCE at the most: those whose token has an item are there already. */
static void tokens_ask(struct flow *flow, const struct chain *chain, struct chain_entry **wanted,
                       size_t count)
{
    struct slice names[TOKENS_AT_ONCE], item, keys = SLICE("");
    for (size_t i = 0; i < count; i++)
        names[i] = token_text(flow, chain->token_kind, chain->token_name, wanted[i]->token);
    if (count == 1) {
        item = token_find(flow, chain->token_kind, chain->token_name, wanted[0]->token);
        if (item.data) repeat_take(flow, wanted[0], item);
        return;
    }
    for (size_t i = 0; i < count; i++) keys = flow_compose(flow, "%A%,{'token':%S}", keys, names[i]);
    struct item_batch batch = get_items_begin(flow, &token_table, keys, READ_FRESH);
    while (get_items_next(flow, &batch, &item)) {
        struct slice name = item_text(flow->arena, item, "token");
        for (size_t i = 0; i < count; i++)
            if (slice_equal(names[i], name)) repeat_take(flow, wanted[i], item);
    }
}

/* What a page says of a token: "OFFSET MARK". False: nothing that can be read. */
static bool token_split(struct flow *flow, struct slice value, int64_t *offset, struct slice *mark)
{
    struct slice text = attribute_text(flow->arena, value);
    const char *space = text.data ? memchr(text.data, ' ', text.len) : NULL;
    size_t digits = space ? (size_t)(space - text.data) : 0;
    *mark = slice_from(text, space ? digits + 1 : text.len);
    return space && raw_int((struct slice){text.data, digits}, offset);
}

/* The tokens that stand in the last page. */
static void tokens_compare(struct flow *flow, const struct chain_end *end, struct chain_entry *entries,
                           size_t count)
{
    struct slice token, value;
    if (!end->tokens.data) return;
    raw_each_member (flow->arena, end->tokens, &token, &value) {
        struct slice mark;
        int64_t offset;
        if (!token_split(flow, value, &offset, &mark)) continue;
        for (size_t i = 0; i < count; i++) {
            if (!is_left(&entries[i]) || !entries[i].token.data || !slice_equal(entries[i].token, token))
                continue;
            entries[i].number = end->first + offset;
            entries[i].first_mark = mark;
            entries[i].is_repeated = true;
        }
    }
}

/* The end was read before (U4). */
static void tokens_find(struct flow *flow, const struct chain *chain, const struct chain_end *end,
                        struct chain_entry *entries, size_t count)
{
    if (!twins_find(flow, entries, count)) return;
    struct chain_entry *wanted[TOKENS_AT_ONCE];
    tokens_compare(flow, end, entries, count);
    for (size_t i = 0, found = 0; i < count; i++) {
        if (is_left(&entries[i]) && entries[i].token.data) wanted[found++] = &entries[i];
        if (!found || (found < TOKENS_AT_ONCE && i + 1 < count)) continue;
        tokens_ask(flow, chain, wanted, found);
        found = 0;
    }
}

/* Writes down the tokens of the last page, where that has not been done. */
static void tokens_write(struct flow *flow, const struct chain *chain, struct chain_end *end)
{
    struct raw_look look;
    struct slice token, value;
    raw_look_begin(&look, flow->arena, end->tokens);
    bool has_more = end->tokens.data && raw_look_next(&look, &token, &value);
    while (has_more) {
        struct slice puts = SLICE(""), item = SLICE("");
        size_t count = 0;
        for (; has_more && count < LIMIT_BATCH_WRITE_REQUESTS; count++) {
            struct slice mark;
            int64_t offset = 0;
            token_split(flow, value, &offset, &mark);
            item = flow_compose(flow, "{'token':%S,'expires':%N,'chain':%S,'number':%N,'mark':%S}",
                                token_text(flow, chain->token_kind, chain->token_name, token),
                                flow->now_ms / 1000 + TOKEN_KEPT_S, chain->key, end->first + offset, mark);
            puts = flow_compose(flow, "%A%,{'PutRequest':{'Item':%A}}", puts, item);
            has_more = raw_look_next(&look, &token, &value);
        }
        if (count == 1)
            task_call(flow, "PutItem", "{'TableName':%T,'Item':%A}", &token_table, item);
        else
            write_items(flow, flow_compose(flow, "{%T:[%A]}", &token_table, puts));
    }
    end->tokens = SLICE_NONE;
}

/* ---- appending ---- */

struct page {
    size_t count;                /* of entries */
    struct slice values, tokens; /* members of their list and map */
    struct slice seal;           /* SLICE_NONE: it is none */
    struct slice note;           /* likewise */
    int64_t keep_s;
};

/* Puts the page behind the end and moves that on: behind this page, or behind the one that was faster. */
static bool page_put(struct flow *flow, const struct chain *chain, struct chain_end *end,
                     const struct page *page)
{
    int64_t id = (int64_t)(flow_random(flow) >> 11), first = end->next;
    int64_t time_ms = flow->now_ms > end->time_ms ? flow->now_ms : end->time_ms;
    struct slice tokens = SLICE(""), seal = SLICE(""), expires = SLICE("");
    if (page->tokens.len) tokens = flow_compose(flow, ",'k':{'M':{%A}}", page->tokens);
    if (page->seal.data) seal = flow_compose(flow, ",'s':%A", page->seal);
    if (page->note.data) seal = flow_compose(flow, "%A,'c':%A", seal, page->note);
    if (page->keep_s)
        expires = flow_compose(flow, ",'expires':%N", time_ms / 1000 + page->keep_s + CHAIN_LATE_S);
    task_call(flow, "PutItem",
              "{'TableName':%T,'Item':{'chain':%S,'first':%N,'n':%N,'t':%N,'i':%N,'e':{'L':[%A]}%A%A%A},"
              "'ConditionExpression':'attribute_not_exists(#first)',%#,%O}",
              chain->table, chain->key, first, (int64_t)page->count, time_ms, id, page->values, tokens, seal,
              expires);
    if (flow_failed(flow)) return end_take(flow, end, flow_item(flow)) == id;
    *end = (struct chain_end){.next = first + (int64_t)page->count,
                              .first = first,
                              .time_ms = time_ms,
                              .is_sealed = page->seal.data != NULL,
                              .seal = page->seal,
                              .note = page->note};
    if (page->tokens.len) end->tokens = flow_compose(flow, "{%A}", page->tokens);
    return true;
}

/* The next entries that fit into one page, from *at on, which moves behind them. */
static struct page page_make(struct flow *flow, const struct chain *chain, struct chain_entry *entries,
                             size_t count, size_t *at)
{
    struct page page = {.keep_s = chain->keep_s};
    struct buf values = {0}, tokens = {0};
    size_t bytes = 0;
    const struct chain_together *together = NULL;
    for (; *at < count; ++*at) {
        const struct chain_entry *entry = &entries[*at];
        if (!is_left(entry)) continue;
        if (entry->together != together) {
            together = entry->together;
            if (together && page.count && (together->waits || bytes + together->bytes > CHAIN_PAGE_BYTES))
                break;
        }
        bytes += entry->value.len + entry->token.len + entry->mark.len + ENTRY_SLACK;
        if (page.count && bytes > CHAIN_PAGE_BYTES && !together) break;
        if (page.count) buf_byte(&values, ',');
        buf_slice(&values, entry->value);
        if (entry->token.data) {
            if (tokens.len) buf_byte(&tokens, ',');
            json_put_string(&tokens, entry->token);
            buf_printf(&tokens, ":{\"S\":\"%zu %.*s\"}", page.count, SLICE_ARG(entry->mark));
        }
        page.count++;
    }
    page.values = arena_take(flow->arena, &values);
    page.tokens = arena_take(flow->arena, &tokens);
    return page;
}

/* How many are not there yet; of those with a token only, where that is asked for. */
static size_t left_count(const struct chain_entry *entries, size_t count, bool with_token)
{
    size_t left = 0;
    for (size_t i = 0; i < count; i++) left += is_left(&entries[i]) && (!with_token || entries[i].token.data);
    return left;
}

void chain_catch_up(struct flow *flow, const struct chain *chain, struct chain_end *end,
                    struct chain_entry *entries, size_t count)
{
    struct arena_mark mark = arena_mark(flow->arena);
    struct slice limit = flow_compose(flow, ",'Limit':%d", (int64_t)PAGES_AT_ONCE); /* it is mostly near */
    for (bool more = true; more && !end->is_sealed && left_count(entries, count, false);) {
        struct slice page;
        task_query(flow, "#chain = :chain and #first >= :next", READ_FRESH "%r", "':chain':%S,':next':%N",
                   chain->table, limit, chain->key, end->next);
        more = flow_last_key(flow).data != NULL;
        limit = SLICE("");
        raw_each (flow->arena, flow_items(flow), &page) {
            end_take(flow, end, page);
            tokens_compare(flow, end, entries, count);
        }
        if (!more || left_count(entries, count, false) < count) continue;
        end->tokens = SLICE_NONE; /* they were compared, and are gone with the reply */
        flow_rewind(flow, mark);
    }
}

bool chain_append(struct flow *flow, const struct chain *chain, struct chain_end *end,
                  struct chain_entry *entries, size_t count)
{
    unsigned lost = 0;
    if (chain->token_kind) tokens_find(flow, chain, end, entries, count);
    for (size_t from = 0, to = 0; from < count; from = to) {
        if (chain->check && !end->is_sealed) chain->check(flow, chain, end, entries, count);
        struct page page = page_make(flow, chain, entries, count, &to);
        if (!page.count) break;
        if (chain->token_kind) tokens_write(flow, chain, end);
        if (end->is_sealed) break;
        if (page_put(flow, chain, end, &page)) {
            int64_t number = end->first;
            for (size_t i = from; i < to; i++)
                if (is_left(&entries[i])) entries[i].number = number++;
            ensure(number == end->next);
        } else {
            to = from;
            tokens_compare(flow, end, entries, count);
            if (++lost % RACES_IN_PLACE) continue;
            task_again(flow); /* far behind, or one of very many */
            if (!chain->token_kind && left_count(entries, count, true)) {
                chain_catch_up(flow, chain, end, entries, count);
            } else { /* the pages between are not read */
                chain_read_end(flow, chain, end);
                if (chain->token_kind) tokens_find(flow, chain, end, entries, count);
            }
        }
    }
    if (chain->token_kind) tokens_write(flow, chain, end);
    /* Those whose twin is there are, too. */
    for (size_t i = 0; i < count; i++) {
        const struct chain_entry *twin = entries[i].twin;
        if (!twin || !twin->number) continue;
        entries[i].number = twin->number;
        entries[i].first_mark = twin->is_repeated ? twin->first_mark : twin->mark;
        entries[i].chain = twin->chain;
        entries[i].is_repeated = true;
    }
    end_remember(flow, chain, end);
    for (size_t i = 0; i < count; i++)
        if (!entries[i].number) return false;
    return true;
}

bool chain_put(struct flow *flow, const struct chain *chain, struct chain_end *end, struct slice values,
               size_t count, struct slice note)
{
    ensure(!end->is_sealed && !chain->token_kind);
    return page_put(flow, chain, end, &(struct page){.count = count, .values = values, .note = note});
}

void chain_seal(struct flow *flow, const struct chain *chain, struct chain_end *end, struct slice says,
                int64_t keep_s)
{
    while (!end->is_sealed) {
        if (chain->token_kind) tokens_write(flow, chain, end);
        page_put(flow, chain, end, &(struct page){.values = SLICE(""), .seal = says, .keep_s = keep_s});
    }
    end_remember(flow, chain, end);
}

void chain_expire(struct flow *flow, const struct chain *chain, const struct chain_end *end, int64_t keep_s)
{
    task_call(
        flow, "UpdateItem",
        "{'TableName':%T,'Key':{'chain':%S,'first':%N},'UpdateExpression':'SET #expires = :expires',"
        "'ConditionExpression':'attribute_exists(#first)',%#,'ExpressionAttributeValues':{':expires':%N}}",
        chain->table, chain->key, end->first, flow->now_ms / 1000 + keep_s);
}

/* ---- reading ---- */

/* As many pages as the entries that are still wanted may need, by those that were read. */
static int64_t pages_wanted(const struct chain_reader *reader)
{
    if (!reader->most) return PAGES_AT_ONCE;
    int64_t left = reader->most - reader->told;
    if (reader->pages_read) return left * reader->pages_read / reader->entries_read + 1;
    return left < PAGES_AT_ONCE ? left : PAGES_AT_ONCE;
}

static void reader_ask(struct flow *flow, struct chain_reader *reader, bool backwards, int64_t limit)
{
    task_query(flow, "#chain = :chain and #first %r :next", ",'ScanIndexForward':%b,'Limit':%d" READ_FRESH,
               "':chain':%S,':next':%N", reader->chain->table, backwards ? SLICE("<=") : SLICE(">="),
               (int)!backwards, limit, reader->chain->key, reader->next);
    raw_look_begin(&reader->look, flow->arena, flow_items(flow));
    reader->has_more = backwards != reader->backwards || flow_last_key(flow).data;
}

/* The entries of a page, as far as they are wanted. */
static void page_open(struct flow *flow, struct chain_reader *reader, struct slice item)
{
    struct slice page[PAGE_MEMBERS], value;
    int64_t behind, count = 0; /* the entries */
    raw_pick(flow->arena, item, page_names, page, PAGE_MEMBERS);
    reader->first = attribute_int(flow->arena, page[PAGE_FIRST], 0);
    reader->count = attribute_int(flow->arena, page[PAGE_COUNT], 0);
    reader->time_ms = attribute_int(flow->arena, page[PAGE_TIME], 0);
    reader->next = reader->backwards ? reader->first - 1 : reader->first + reader->count;
    if (reader->next < reader->from && !reader->backwards) reader->next = reader->from;
    if (page[PAGE_SEAL].data && !reader->backwards) reader->has_more = false; /* U2 */
    if (reader->count) {
        reader->pages_read++;
        reader->entries_read += reader->count;
    }
    reader->values = arena_array(flow->arena, struct slice, (size_t)reader->count);
    raw_each (flow->arena, attribute_content(flow->arena, page[PAGE_ENTRIES]), &value)
        if (count < reader->count) reader->values[count++] = value;
    behind = reader->first + reader->count;
    if (reader->backwards)
        reader->at = reader->from < behind ? behind - 1 - reader->from : 0;
    else
        reader->at = reader->from > reader->first ? reader->from - reader->first : 0;
}

bool chain_read(struct flow *flow, struct chain_reader *reader)
{
    struct slice item;
    reader->value = SLICE_NONE;
    if (reader->most && reader->told == reader->most) return false;
    if (!reader->has_begun) {
        /* The first page of all may be in the middle of the one that holds it, which the Query before it finds. */
        bool is_known = reader->backwards || reader->page || reader->from <= 1;
        reader->has_begun = true;
        reader->mark = arena_mark(flow->arena);
        reader->next = reader->page ? reader->page : reader->from;
        reader_ask(flow, reader, reader->backwards || !is_known, is_known ? pages_wanted(reader) : 1);
    }
    while (reader->at >= reader->count) {
        if (raw_look_next(&reader->look, NULL, &item)) {
            page_open(flow, reader, item);
        } else if (reader->has_more && reader->next >= 1) {
            if (reader->rewinds) flow_rewind(flow, reader->mark);
            reader->count = reader->at = 0;
            reader_ask(flow, reader, reader->backwards, pages_wanted(reader));
        } else {
            return false;
        }
    }
    int64_t offset = reader->backwards ? reader->count - 1 - reader->at : reader->at;
    reader->at++;
    reader->told++;
    reader->number = reader->first + offset;
    reader->value = reader->values[offset];
    reader->is_last_of_page = offset == reader->count - 1;
    return true;
}

/* ---- removing ---- */

/* Deletes pages from the first on, as long as they end below the number and, if `spares`, another page follows. */
static void pages_delete(struct flow *flow, const struct chain *chain, int64_t below, bool spares)
{
    struct slice keys[SWEEP_REMOVED], item;
    struct arena_mark mark = arena_mark(flow->arena);
    for (size_t count = SWEEP_REMOVED; count == SWEEP_REMOVED;) {
        struct raw_look look;
        count = 0;
        flow_rewind(flow, mark);
        task_query(flow, "#chain = :chain",
                   ",'ProjectionExpression':'#chain, #first, #n','Limit':%d" READ_FRESH, "':chain':%S",
                   chain->table, (int64_t)(SWEEP_REMOVED + 1), chain->key);
        raw_look_begin(&look, flow->arena, flow_items(flow));
        bool has_next = raw_look_next(&look, NULL, &item);
        while (has_next && count < SWEEP_REMOVED) {
            int64_t first = item_int(flow->arena, item, "first", 0);
            if (first + item_int(flow->arena, item, "n", 0) > below) break;
            struct slice key = flow_compose(flow, "{'chain':%S,'first':%N}", chain->key, first);
            has_next = raw_look_next(&look, NULL, &item);
            if (has_next || !spares) keys[count++] = key;
        }
        if (count) delete_items(flow, chain->table, keys, count);
    }
}

void chain_trim(struct flow *flow, const struct chain *chain, int64_t number)
{
    pages_delete(flow, chain, number, true);
}

void chain_remove(struct flow *flow, const struct chain *chain)
{
    pages_delete(flow, chain, INT64_MAX, false);
}
