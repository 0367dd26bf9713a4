const script = `
import fs from 'fs';
export default 5;
`;
script
