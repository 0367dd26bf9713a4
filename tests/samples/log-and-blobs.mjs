import { blobs, log } from 'runtime';

log.info('writing', { bytes: 7 });
const id = blobs.writeText('content');
[id, blobs.readText(id)]
