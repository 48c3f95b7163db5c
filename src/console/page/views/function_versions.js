// Versions, aliases and URLs of a function.

import {at, request} from '../api.js';
import {h, replace} from '../dom.js';
import {bytes} from '../format.js';
import {
    changeButton,
    confirmTyped,
    copyButton,
    dialog,
    faultPlace,
    field,
    grid,
    input,
    oneAtATime,
    select,
    shell,
    since,
    teach,
} from '../parts.js';

export async function openVersions({el, name, configuration, signal}) {
    const faults = faultPlace();
    let versions = [],
        aliases = [],
        urls = [];
    const path = at`/2015-03-31/functions/${name}`;
    const versionList = grid({
        label: 'Versions',
        key: one => one.Version,
        columns: [
            {title: 'Version', cell: one => one.Version},
            {title: 'About', cell: one => one.Description ?? '', wide: true},
            {title: 'Runtime', cell: one => one.Runtime ?? ''},
            {title: 'Code', right: true, cell: one => (one.Quipu?.Directory ? 'folder' : bytes(one.CodeSize))},
            {title: 'Changed', cell: one => since(one.LastModified)},
            {
                title: 'Actions',
                once: true,
                cell: one =>
                    one.Version === '$LATEST'
                        ? ''
                        : deleteButton(
                              one.Version,
                              `version ${one.Version}`,
                              path + '?Qualifier=' + encodeURIComponent(one.Version),
                          ),
            },
        ],
    });
    const aliasList = grid({
        label: 'Aliases',
        key: one => one.Name,
        empty: h('p.dim', 'No aliases. An alias is a name for a version, which can be pointed elsewhere.'),
        columns: [
            {title: 'Alias', cell: one => one.Name},
            {title: 'Version', cell: versionsOf},
            {title: 'About', cell: one => one.Description ?? '', wide: true},
            {
                title: 'Actions',
                once: true,
                cell: one => [
                    changeButton('Change', () => aliasDialog(aliases.find(each => each.Name === one.Name)), {
                        class: 'small',
                        'aria-label': `Change ${one.Name}`,
                    }),
                    ' ',
                    deleteButton(one.Name, `alias ${one.Name}`, path + at`/aliases/${one.Name}`),
                ],
            },
        ],
    });
    const urlList = grid({
        label: 'URLs',
        key: one => one.FunctionArn,
        empty: h('p.dim', 'No URL. With one, any HTTP client calls the function, whatever the method and path.'),
        columns: [
            {title: 'Of', cell: one => qualifierOf(one) ?? '$LATEST'},
            {
                title: 'URL',
                once: true,
                cell: one => [
                    h('a', {href: pathOf(one)}, location.origin + pathOf(one)),
                    ' ',
                    copyButton(location.origin + pathOf(one)),
                ],
            },
            {title: 'Who', cell: one => (one.AuthType === 'NONE' ? 'anybody' : 'signed requests')},
            {title: 'Answers', cell: one => (one.InvokeMode === 'RESPONSE_STREAM' ? 'as they are written' : 'whole')},
            {title: 'Pages of', cell: one => one.Cors?.AllowOrigins?.join(', ') ?? ''},
            {title: 'Actions', once: true, cell: one => deleteButton(name, 'URL', urlPath(qualifierOf(one)))},
        ],
    });
    const qualifierOf = one => /:function:[^:]+:(.+)$/.exec(one.FunctionArn)?.[1] ?? null;
    const pathOf = one =>
        `/_url/${encodeURIComponent(name)}${qualifierOf(one) ? ':' + encodeURIComponent(qualifierOf(one)) : ''}/`;
    const urlPath = qualifier =>
        at`/2021-10-31/functions/${name}/url` + (qualifier ? `?Qualifier=${encodeURIComponent(qualifier)}` : '');
    function versionsOf(one) {
        const [[other, weight] = []] = Object.entries(one.RoutingConfig?.AdditionalVersionWeights ?? {});
        return other ? `${one.FunctionVersion}, ${Math.round(weight * 100)} % ${other}` : one.FunctionVersion;
    }
    const deleteButton = (typed, what, target) =>
        changeButton(
            'Delete …',
            async () => {
                const done = await confirmTyped({
                    title: `Delete the ${what} of ${name}?`,
                    name: typed,
                    sentence: 'Whoever calls the function by it is refused from then on.',
                    words: 'Delete',
                    job: () => request('DELETE', target),
                });
                if (done) await refresh();
            },
            {class: 'small', 'aria-label': `Delete ${what}`},
        );

    async function publish() {
        const about = input();
        const done = await dialog({
            title: `Publish a version of ${name}`,
            body: () => [
                h(
                    'p',
                    'A version keeps the code and settings as they are now. Without a change there is no new one.',
                ),
                configuration.Quipu?.Directory
                    ? h('p', 'The code is a folder: versions run what is in it then.')
                    : null,
                field('About', about),
            ],
            actions: [
                ['Publish', () => request('POST', path + '/versions', {body: {Description: about.value}}), 'primary'],
            ],
        });
        if (done) await refresh();
    }
    async function aliasDialog(one = null) {
        const numbers = versions.map(version => version.Version);
        const [[other = '', weight = 0] = []] = Object.entries(one?.RoutingConfig?.AdditionalVersionWeights ?? {});
        const label = input({value: one?.Name ?? '', disabled: !!one, required: true}),
            version = select(numbers, one?.FunctionVersion ?? numbers.at(-1)),
            second = select([['', 'none'], ...numbers.filter(n => n !== '$LATEST')], other),
            percent = input({type: 'number', min: 0, max: 100, value: weight ? Math.round(weight * 100) : ''}),
            about = input({value: one?.Description ?? ''});
        const done = await dialog({
            title: one ? `Change the alias ${one.Name}` : 'Add an alias',
            body: () => [
                field('Name', label),
                field('Version', version),
                field('A second version', second),
                field('Its share, percent', percent),
                field('About', about),
            ],
            actions: [
                [
                    'Save',
                    async () => {
                        const share = second.value ? {[second.value]: Number(percent.value || 0) / 100} : {};
                        const body = {
                            FunctionVersion: version.value,
                            Description: about.value,
                            RoutingConfig: {AdditionalVersionWeights: share},
                        };
                        if (one) await request('PUT', path + at`/aliases/${one.Name}`, {body});
                        else await request('POST', path + '/aliases', {body: {...body, Name: label.value.trim()}});
                        return true;
                    },
                    'primary',
                ],
            ],
        });
        if (done) await refresh();
    }
    async function urlDialog() {
        const of = select([['', '$LATEST'], ...aliases.map(one => one.Name)], ''),
            auth = select(
                [
                    ['NONE', 'anybody'],
                    ['AWS_IAM', 'signed requests'],
                ],
                'NONE',
            ),
            mode = select(
                [
                    ['BUFFERED', 'whole'],
                    ['RESPONSE_STREAM', 'as they are written'],
                ],
                'BUFFERED',
            ),
            origins = input({placeholder: 'https://example.com'});
        const done = await dialog({
            title: 'Add a URL',
            body: () => [
                field('Of', of),
                field('Who may call', auth),
                field('Answers are sent', mode),
                field('Pages of these origins may call', origins, 'separated by spaces; * is any'),
            ],
            actions: [
                [
                    'Add',
                    async () => {
                        const list = origins.value.split(/\s+/).filter(Boolean);
                        await request('POST', urlPath(of.value), {
                            body: {
                                AuthType: auth.value,
                                InvokeMode: mode.value,
                                ...(list.length
                                    ? {Cors: {AllowOrigins: list, AllowMethods: ['*'], AllowHeaders: ['*']}}
                                    : {}),
                            },
                        });
                        return true;
                    },
                    'primary',
                ],
            ],
        });
        if (done) await refresh();
    }
    const refresh = oneAtATime(() =>
        faults.run(async () => {
            const answers = await Promise.all([
                request('GET', path + '/versions', {signal}),
                request('GET', path + '/aliases', {signal}),
                request('GET', at`/2021-10-31/functions/${name}/urls`, {signal}),
            ]);
            versions = answers[0].Versions;
            aliases = answers[1].Aliases;
            urls = answers[2].FunctionUrlConfigs;
            versionList.update(versions);
            aliasList.update(aliases);
            urlList.update(urls);
        }),
    );
    replace(
        el,
        faults.element,
        h('div.bar', h('h3.grow', 'Versions'), changeButton('Publish …', publish)),
        versionList.element,
        h(
            'div.bar',
            h('h3.grow', 'Aliases'),
            changeButton('Add an alias …', () => aliasDialog()),
        ),
        aliasList.element,
        h('div.bar', h('h3.grow', 'URLs'), changeButton('Add a URL …', urlDialog)),
        urlList.element,
        teach({
            CLI: shell('quipu', 'function', 'publish', name),
            AWS: shell(
                'aws',
                '--endpoint-url',
                location.origin,
                'lambda',
                'list-versions-by-function',
                '--function-name',
                name,
            ),
        }),
    );
    await refresh();
    return {};
}
