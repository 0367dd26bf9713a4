// Who is signed in, and what the key's scopes allow.
import { ApiError, getJson, keepPageToken, onSignedOut, pageToken, postJson, remove } from '/ui/api.js';
import { observable } from '/ui/hooks.js';

/** @typedef {import('./types.d.ts').Session} Session */
/** @typedef {{state: 'unknown' | 'out' | 'in' | 'unreachable', session: Session | null, reason: string | null}} SignIn */

/** @type {import('./hooks.js').Observable<SignIn>} */
export const signIn = observable(/** @type {SignIn} */ ({ state: 'unknown', session: null, reason: null }));

/** @param {string | null} reason */
function signedOut(reason) {
  keepPageToken(null);
  signIn.set({ state: 'out', session: null, reason });
}

onSignedOut(() => {
  if (signIn.get().state === 'in') signedOut('You were signed out: the session or its key has ended.');
});

/** Takes the token of a sign-in link out of the address at once, so that no history keeps it. */
function takeLinkToken() {
  const match = /^#token=([^&]+)/.exec(location.hash);
  if (!match) return null;
  history.replaceState(history.state, '', location.pathname + location.search);
  return match[1];
}

/** Signs in by the link of the address or by the session that exists. */
export async function restoreSession() {
  const token = takeLinkToken();
  if (token !== null) return signInBy({ token }).catch((error) => signedOut(linkReason(error)));
  if (!pageToken()) return signedOut(null);
  try {
    signIn.set({ state: 'in', session: await getJson('/v1/session'), reason: null });
  } catch (error) {
    if (error instanceof ApiError && error.status === 0)
      signIn.set({ state: 'unreachable', session: null, reason: error.message });
    else signedOut(null);
  }
}

/** A link that is opened where the dashboard is open already only changes the fragment. */
export function watchLinks() {
  window.addEventListener('hashchange', () => {
    if (location.hash.startsWith('#token=')) restoreSession();
  });
}

/** @param {unknown} error */
function linkReason(error) {
  if (error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500))
    return error.message;
  return 'This link was used already or is older than 10 minutes. Print a new one with `skillbox open`.';
}

/** @param {{key: string} | {token: string}} proof */
export async function signInBy(proof) {
  keepPageToken(null);
  const session = await postJson('/v1/session', proof);
  keepPageToken(session.page_token);
  signIn.set({ state: 'in', session, reason: null });
}

export async function signOut() {
  await remove('/v1/session').catch(() => {});
  signedOut(null);
}

/**
 * Whether the key may do this; `admin` includes the other scopes.
 * @param {'run' | 'skills' | 'admin'} scope
 */
export function allows(scope) {
  const scopes = signIn.get().session?.key.scopes ?? [];
  return scopes.includes(scope) || scopes.includes('admin');
}

/** Whether the key is an administrator of the tenant that runs the installation. */
export function administersServer() {
  return allows('admin') && signIn.get().session?.tenant === 'default';
}
