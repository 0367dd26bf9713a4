import { Client } from '../skillbox.js'; export const c: Client | undefined = undefined;
