//! Names of containers: what their runtime wrote into files about a container whose id the path of a cgroup has. No
//! service is asked.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::Value;
use systape_format::cgroups;
use systape_format::model::Container;

/// Bundles of containerd, one directory for each of its namespaces.
const CONTAINERD: &str = "run/containerd/io.containerd.runtime.v2.task";
/// Bundles of CRI-O and of Podman.
const STORAGE: [&str; 2] =
    ["run/containers/storage/overlay-containers", "var/lib/containers/storage/overlay-containers"];
/// Podman's lists beside its bundles, which have no names: of all containers, and of those that go with the machine or their end.
const LISTS: [&str; 2] = ["containers.json", "volatile-containers.json"];
/// Docker's own files.
const DOCKER: &str = "var/lib/docker/containers";
/// Most namespaces of containerd.
const MOST_NAMESPACES: usize = 64;
/// Most bytes of a file, and of a name in it.
const MOST_BYTES: u64 = 1 << 20;
const MOST_NAME: usize = 256;

/// Annotations of bundles: by containerd's CRI, by CRI-O, by nerdctl; the first that there is.
const NAMES: [&str; 3] = ["io.kubernetes.cri.container-name", "io.kubernetes.container.name", "nerdctl/name"];
const IMAGES: [&str; 2] = ["io.kubernetes.cri.image-name", "io.kubernetes.cri-o.ImageName"];
const PODS: [&str; 2] = ["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"];
const NAMESPACES: [&str; 2] = ["io.kubernetes.cri.sandbox-namespace", "io.kubernetes.pod.namespace"];

/// The root directory, and the owner of files that are believed.
const ROOT: (&str, u32) = ("/", 0);
/// Most containers that are looked up when the recording begins.
const MOST: usize = 4096;

/// The containers that these paths of cgroups are named after, each once.
pub(crate) fn of<'a>(paths: impl Iterator<Item = &'a [u8]>) -> Vec<Container> {
    let ids: BTreeSet<&str> = paths.filter_map(id).take(MOST).collect();
    ids.into_iter().filter_map(look_up).collect()
}

/// The id of the container that a cgroup's path names.
pub(crate) fn id(path: &[u8]) -> Option<&str> {
    std::str::from_utf8(path).ok().and_then(cgroups::container)
}

/// What is known of the container `id`; None: nothing. May wait for a disk.
pub(crate) fn look_up(id: &str) -> Option<Container> {
    let (root, owner) = ROOT;
    find(Path::new(root), owner, id)
}

/// What is known of the container `id`, below `root`, from files of `owner`; None: nothing. May wait for a disk.
fn find(root: &Path, owner: u32, id: &str) -> Option<Container> {
    let mut found = Container { id: id.as_bytes().to_vec(), ..Container::default() };
    let bundle = bundles(root, id).into_iter().find_map(|dir| json(&dir.join("config.json"), owner));
    if let Some(annotations) = bundle.as_ref().map(|json| &json["annotations"]) {
        let first = |keys: &[&str]| keys.iter().find_map(|key| name(&annotations[key])).unwrap_or_default();
        found.name = first(&NAMES);
        found.image = first(&IMAGES);
        found.pod = first(&PODS);
        found.namespace = first(&NAMESPACES);
    }
    if found.name.is_empty()
        && let Some(json) = json(&root.join(DOCKER).join(id).join("config.v2.json"), owner)
    {
        found.name = name(&json["Name"]).unwrap_or_default();
        // as typed: with a slash in front
        found.name = found.name.strip_prefix(b"/").map_or(found.name.clone(), <[u8]>::to_vec);
        found.image = name(&json["Config"]["Image"]).unwrap_or_default();
    }
    if found.name.is_empty()
        && let Some((name, image)) = listed(root, owner, id)
    {
        (found.name, found.image) = (name, image);
    }
    let Container { id: _, name, image, pod, namespace } = &found;
    [name, image, pod, namespace].iter().any(|text| !text.is_empty()).then_some(found)
}

/// Name and image of a container in Podman's lists.
fn listed(root: &Path, owner: u32, id: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let lists = STORAGE.iter().flat_map(|dir| LISTS.map(|list| root.join(dir).join(list)));
    let entry = lists.filter_map(|list| json(&list, owner)).find_map(|list| {
        let is_it = |entry: &&Value| entry["id"] == id;
        list.as_array()?.iter().find(is_it).cloned()
    })?;
    let called = name(&entry["names"][0])?;
    // a text in which JSON is once more
    let more: Option<Value> = entry["metadata"].as_str().and_then(|text| serde_json::from_str(text).ok());
    Some((called, more.and_then(|more| name(&more["image-name"])).unwrap_or_default()))
}

/// Where its bundle may be.
fn bundles(root: &Path, id: &str) -> Vec<PathBuf> {
    let namespaces = fs::read_dir(root.join(CONTAINERD)).into_iter().flatten().flatten().take(MOST_NAMESPACES);
    let containerd = namespaces.map(|namespace| namespace.path().join(id));
    let storage = STORAGE.iter().map(|dir| root.join(dir).join(id).join("userdata"));
    containerd.chain(storage).collect()
}

/// A file that its owner alone could write: others could name a container as they like, or let it wait.
fn json(path: &Path, owner: u32) -> Option<Value> {
    let mut options = File::options();
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    let facts = file.metadata().ok()?;
    if !facts.is_file() || facts.uid() != owner || facts.mode() & 0o022 != 0 || facts.len() > MOST_BYTES {
        return None;
    }
    let mut text = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn name(value: &Value) -> Option<Vec<u8>> {
    let text = value.as_str()?.as_bytes();
    (!text.is_empty()).then(|| text[..text.len().min(MOST_NAME)].to_vec())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const ID: &str = "4d2c0e3bd3c9ba2bd2f8e6ad1d6b7e8a2d8e1e0a86a1a4a4d6f5a2d1b3c4e5f6";

    fn write(root: &Path, path: &str, text: &str) -> PathBuf {
        let path = root.join(path.replace("ID", ID));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn found(root: &Path) -> Option<[String; 4]> {
        let Container { name, image, pod, namespace, .. } = find(root, own(), ID)?;
        Some([name, image, pod, namespace].map(|text| String::from_utf8(text).unwrap()))
    }

    #[test]
    fn files_of_each_runtime() {
        let crio = r#"{"annotations": {"io.kubernetes.container.name": "web", "io.kubernetes.cri-o.ImageName": "nginx:1",
            "io.kubernetes.pod.name": "web-7", "io.kubernetes.pod.namespace": "prod"}}"#;
        let cri = r#"{"annotations": {"io.kubernetes.cri.container-name": "web", "io.kubernetes.cri.image-name": "nginx:1",
            "io.kubernetes.cri.sandbox-name": "web-7", "io.kubernetes.cri.sandbox-namespace": "prod"}}"#;
        let docker = r#"{"Name": "/web", "Config": {"Image": "nginx:1"}}"#;
        // as Podman 4.3 writes it, shortened
        let podman = r#"[{"id":"another","names":["db"]},{"id":"ID","names":["web"],"image":"352bc7d3","layer":"2fa400a2",
            "metadata":"{\"image-name\":\"localhost/tiny:1\",\"name\":\"web\",\"created-at\":1796143081}","flags":{}}]"#;
        let podman = &podman.replace("ID", ID);
        for (path, text, expected) in [
            (
                "run/containerd/io.containerd.runtime.v2.task/k8s.io/ID/config.json",
                cri,
                ["web", "nginx:1", "web-7", "prod"],
            ),
            (
                "run/containers/storage/overlay-containers/ID/userdata/config.json",
                crio,
                ["web", "nginx:1", "web-7", "prod"],
            ),
            ("var/lib/docker/containers/ID/config.v2.json", docker, ["web", "nginx:1", "", ""]),
            (
                "run/containerd/io.containerd.runtime.v2.task/default/ID/config.json",
                r#"{"annotations": {"nerdctl/name": "db"}}"#,
                ["db", "", "", ""],
            ),
            (
                "var/lib/containers/storage/overlay-containers/containers.json",
                podman,
                ["web", "localhost/tiny:1", "", ""],
            ),
            (
                "run/containers/storage/overlay-containers/volatile-containers.json",
                podman,
                ["web", "localhost/tiny:1", "", ""],
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            assert_eq!(found(root.path()), None);
            let file = write(root.path(), path, text);
            assert_eq!(found(root.path()).unwrap(), expected, "{path}");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
            assert_eq!(found(root.path()), None, "anybody could have written it");
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            assert_eq!(find(root.path(), own() + 1, ID), None, "somebody else's");
        }
    }

    #[test]
    fn what_is_no_such_file_says_nothing() {
        for text in ["", "{", "[]", "{\"annotations\": 7}", "{\"annotations\": {\"nerdctl/name\": 7}}"] {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), "run/containerd/io.containerd.runtime.v2.task/default/ID/config.json", text);
            assert_eq!(found(root.path()), None, "{text}");
        }
        let root = tempfile::tempdir().unwrap();
        let file = write(root.path(), "var/lib/docker/containers/ID/config.v2.json", "{}");
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert_eq!(found(root.path()), None);
    }

    fn own() -> u32 {
        // SAFETY: it touches no memory.
        unsafe { libc::geteuid() }
    }
}
