// What a person has begun is not lost: edits of an item, words in a form, a menu that is open.
import {engines, test, until} from './harness.mjs';
import {assert, fill, getItem, makeTable} from './tables.mjs';

const ENGINES = engines('--no-functions');

test('items: edits are left only when one says so', ENGINES, async ({person, api, tab}) => {
    await makeTable(api, 'drafts');
    await fill(api, 'drafts', 3, i => ({id: {S: `item ${i}`}, n: {N: String(i)}}));
    const at = () => tab.evaluate(() => decodeURIComponent(location.hash.replaceAll('+', ' ')));
    const isLeft = async () => !(await tab.$('dialog[open]'));
    await person.visit('#/tables/drafts');
    await person.click('item 1', {kind: 'link'});
    await person.type('Value of n', '11');
    // Another row, and then the button: both ask, and nothing is lost by staying.
    await person.open('item 2', {kind: 'link'});
    await person.see('Leave without saving?');
    await person.click('Cancel');
    await until(isLeft, 'the question to go');
    assert((await at()).includes('item=item 1'), `still the first: ${await at()}`);
    await person.open('Close the item');
    await person.click('Cancel');
    await until(isLeft, 'the question to go');
    const value = await person.find('Value of n', {kind: 'input'});
    assert((await value.evaluate(one => one.value)) === '11', 'what was typed is there');
    // What keeps the item open does not ask: a column less.
    await person.click('Columns');
    await person.click('n', {within: '.items-columns'});
    await until(async () => (await at()).includes('columns='), 'the columns in the URL');
    assert(await isLeft(), 'nothing is asked');
    await person.click('Save');
    await person.see('saved');
    assert((await getItem(api, 'drafts', {id: {S: 'item 1'}})).n.N === '11', 'it is saved');
    await person.click('item 2', {kind: 'link'});
    await person.see('item 2', '.items-panel h2');
    // Left without saving: the other is shown, and the table has what it had.
    await person.type('Value of n', '22');
    await person.open('item 0', {kind: 'link'});
    await person.click('Leave');
    await person.see('item 0', '.items-panel h2');
    assert((await getItem(api, 'drafts', {id: {S: 'item 2'}})).n.N === '2', 'it is not saved');
});

test('items: the columns close by a click elsewhere and by Escape', ENGINES, async ({person, api, tab}) => {
    await makeTable(api, 'picked');
    await fill(api, 'picked', 1, () => ({id: {S: 'a'}, n: {N: '1'}}));
    await person.visit('#/tables/picked');
    await person.see('1 item');
    const isOpen = () => tab.$eval('.items-columns', one => one.open);
    await person.click('Columns');
    await until(isOpen, 'the columns');
    await tab.click('.tables-summary');
    await until(async () => !(await isOpen()), 'the columns to close by a click');
    await person.click('Columns');
    await until(isOpen, 'the columns');
    await person.press('Escape');
    await until(async () => !(await isOpen()), 'the columns to close by Escape');
    assert(await tab.evaluate(() => document.activeElement.textContent === 'Columns'), 'the focus is on the button');
});

test('settings: saving one part leaves the words of the others', ENGINES, async ({person, api, tab}) => {
    await makeTable(api, 'halves');
    await person.visit('#/tables/halves/settings');
    await person.type('One on each line: NAME=VALUE', 'team=blues');
    await person.click('Refuse to delete it');
    await person.click('Set the protection');
    await person.see('done', '.tables-settings');
    const {Table} = await api('DescribeTable', {TableName: 'halves'});
    assert(Table.DeletionProtectionEnabled, 'it is protected');
    assert((await tab.$eval('.tables-tags', one => one.value)) === 'team=blues', 'the words are there');
    await person.click('Set the tags');
    await until(async () => {
        const {Tags} = await api('ListTagsOfResource', {ResourceArn: Table.TableArn});
        return Tags.some(tag => tag.Value === 'blues');
    }, 'the tags');
});

test('what was made is opened at once, however long its list takes', ENGINES, async ({person, tab}) => {
    await person.visit('#/boards');
    await person.open('Post a message');
    await person.type('name *', 'slow');
    await person.type('text *', 'here at once');
    await tab.setRequestInterception(true);
    const held = [];
    tab.on('request', one => (one.url().includes('/v1/boards?') ? held.push(one) : one.continue()));
    await person.click('Post a message');
    await person.see('here at once', '.detail');
    for (const one of held) await one.continue();
});
