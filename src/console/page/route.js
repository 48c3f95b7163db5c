// Where one is, as a URL: #/tables/orders/items?filter=...  Parts are percent-encoded, so any name fits.

export function parseRoute(hash = location.hash) {
    const [path, query] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
    return {
        path: path
            .split('/')
            .filter(Boolean)
            .map(part => {
                try {
                    return decodeURIComponent(part);
                } catch {
                    return part;
                }
            }),
        query: Object.fromEntries(new URLSearchParams(query ?? '')),
    };
}

// href(['tables', name, 'items'], {filter}): empty members of the query are left out.
export function href(path, query = {}) {
    const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== '');
    const search = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
    return '#/' + path.map(encodeURIComponent).join('/') + (search ? '?' + search : '');
}

// Who is asked before one goes elsewhere: ask(route) answers null, or a promise of whether to go there all the same.
let guard = null;
export function guardLeaving(ask, signal) {
    guard = ask;
    signal.addEventListener('abort', () => {
        if (guard === ask) guard = null;
    });
}
export const askToLeave = route => guard?.(route) ?? null;

// Goes there. With `quietly` the step is not one of "back" (a filter that is being typed).
export function go(path, query = {}, {quietly = false} = {}) {
    const target = href(path, query);
    if (target === location.hash) return;
    if (!quietly) location.hash = target;
    else {
        history.replaceState(null, '', target);
        dispatchEvent(new HashChangeEvent('hashchange'));
    }
}
