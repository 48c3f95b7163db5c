// AWS's signature, version 4, made in the browser: the secret key never leaves the tab.

const encoder = new TextEncoder();
const hex = buffer => [...new Uint8Array(buffer)].map(byte => byte.toString(16).padStart(2, '0')).join('');
const sha256 = async data =>
    hex(await crypto.subtle.digest('SHA-256', typeof data === 'string' ? encoder.encode(data) : data));

async function hmac(key, data) {
    const imported = await crypto.subtle.importKey(
        'raw',
        typeof key === 'string' ? encoder.encode(key) : key,
        {name: 'HMAC', hash: 'SHA-256'},
        false,
        ['sign'],
    );
    return crypto.subtle.sign('HMAC', imported, encoder.encode(data));
}

const escape = part =>
    encodeURIComponent(part).replace(/[!'()*]/g, letter => '%' + letter.charCodeAt(0).toString(16).toUpperCase());

function canonicalQuery(search) {
    return [...new URLSearchParams(search)]
        .map(([key, value]) => [escape(key), escape(value)])
        .sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : a[1] < b[1] ? -1 : 1))
        .map(pair => pair.join('='))
        .join('&');
}

// A path whose query stands as it is signed: the server signs what it was sent.
export function signedPath(path) {
    const [route, search] = path.split(/\?(.*)/s);
    return search ? `${route}?${canonicalQuery(search)}` : path;
}

// The headers of a signed request. `path`: as it is sent, of signedPath. `body`: text or bytes.
export async function sign({method, path, headers, body, service, region, keys, now = new Date()}) {
    if (!crypto.subtle)
        throw new Error('A browser signs only on pages that come by HTTPS or from localhost, and this one does not.');
    const stamp = now.toISOString().replace(/[-:]|\.\d+/g, '');
    const day = stamp.slice(0, 8);
    const [route, search] = path.split(/\?(.*)/s);
    const digest = await sha256(body ?? '');
    const all = {...headers, host: location.host, 'x-amz-date': stamp, 'x-amz-content-sha256': digest};
    if (keys.token) all['x-amz-security-token'] = keys.token;
    const lower = Object.fromEntries(
        Object.entries(all).map(([key, value]) => [key.toLowerCase(), String(value).trim()]),
    );
    const names = Object.keys(lower).sort();
    const signed = names.join(';');
    const canonical = [
        method,
        route.split('/').map(escape).join('/'),
        canonicalQuery(search ?? ''),
        ...names.map(name => `${name}:${lower[name]}`),
        '',
        signed,
        digest,
    ].join('\n');
    const scope = `${day}/${region}/${service}/aws4_request`;
    const string = ['AWS4-HMAC-SHA256', stamp, scope, await sha256(canonical)].join('\n');
    let key = 'AWS4' + keys.secret;
    for (const part of [day, region, service, 'aws4_request']) key = await hmac(key, part);
    const signature = hex(await hmac(key, string));
    delete all.host; // the browser sends it
    const parts = [`Credential=${keys.id}/${scope}`, `SignedHeaders=${signed}`, `Signature=${signature}`];
    all.Authorization = `AWS4-HMAC-SHA256 ${parts.join(', ')}`;
    return all;
}
