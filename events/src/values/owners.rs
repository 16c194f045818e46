//! What a cgroup belongs to, by its path alone: systemd unit, container, pod, job of a batch system.

use systape_format::cgroups;

/// The process that a cgroup's path belongs to; None = to none, as far as the path tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owners {
    /// The innermost unit of systemd: service, scope, else slice.
    pub unit: Option<String>,
    /// Id of the innermost container, 64 hexadecimal digits.
    pub container: Option<String>,
    /// Uid of the pod of Kubernetes.
    pub pod: Option<String>,
    /// `slurm:JOB`, `slurm:JOB.STEP`, or `condor:SLOT`: HTCondor has no number in the path.
    pub job: Option<String>,
}

impl Owners {
    /// The owners of a path such as `/system.slice/docker-4d2c….scope`.
    pub fn of(path: &str) -> Self {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        Self {
            unit: unit(&parts),
            container: cgroups::container(path).map(str::to_owned),
            pod: parts.iter().rev().find_map(|part| cgroups::pod(part)),
            job: slurm(&parts).or_else(|| parts.iter().rev().find_map(|part| condor(part))),
        }
    }
}

fn unit(parts: &[&str]) -> Option<String> {
    let units = || parts.iter().rev().filter_map(|part| cgroups::unit(part));
    let unit = units().find(|unit| !unit.is_slice).or_else(|| units().next())?;
    Some(unit.name.to_owned())
}

/// `…/job_17/step_0/…` below `slurm`, `slurm_HOST`, `slurmstepd.scope` or `HOST_slurmstepd.scope`.
fn slurm(parts: &[&str]) -> Option<String> {
    let below =
        parts.iter().position(|part| part.split(['_', '.']).any(|word| matches!(word, "slurm" | "slurmstepd")))?;
    let of =
        |prefix: &str| parts[below..].iter().find_map(|part| part.strip_prefix(prefix)).filter(|id| !id.is_empty());
    let job = of("job_").filter(|job| job.bytes().all(|byte| byte.is_ascii_digit()))?;
    Some(of("step_").map_or_else(|| format!("slurm:{job}"), |step| format!("slurm:{job}.{step}")))
}

/// `condor_var_lib_condor_execute_slot1_2@host`, also as a scope.
fn condor(part: &str) -> Option<String> {
    let name = part.strip_suffix(".scope").unwrap_or(part).strip_prefix("condor_")?;
    let slot = name.rfind("_slot").map(|at| &name[at + 1..]).or_else(|| name.strip_prefix("slot").map(|_| name))?;
    slot.contains('@').then(|| format!("condor:{slot}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4d2c0e3bd3c9ba2bd2f8e6ad1d6b7e8a2d8e1e0a86a1a4a4d6f5a2d1b3c4e5f6";
    const POD: &str = "8dbc5577-d0e2-4706-8787-57d52c03ddf2";

    fn of(path: &str) -> [String; 4] {
        let path = path.replace("ID", ID).replace("POD", POD).replace("P_O_D", &POD.replace('-', "_"));
        let Owners { unit, container, pod, job } = Owners::of(&path);
        let short = |text: Option<String>| text.unwrap_or_default().replace(ID, "ID").replace(POD, "POD");
        [unit, container, pod, job].map(short)
    }

    #[test]
    fn every_spelling_is_known() {
        for (path, unit, container, pod, job) in [
            ("/", "", "", "", ""),
            ("/system.slice/nginx.service", "nginx.service", "", "", ""),
            ("/system.slice", "system.slice", "", "", ""),
            ("/user.slice/user-0.slice/user@0.service/app.slice/x.scope", "x.scope", "", "", ""),
            ("/system.slice/_cgroup.service/inner", "cgroup.service", "", "", ""),
            ("/.service", "", "", "", ""),
            // docker
            ("/docker/ID", "", "ID", "", ""),
            ("/docker/ID/inner", "", "ID", "", ""),
            ("/system.slice/docker-ID.scope", "docker-ID.scope", "ID", "", ""),
            ("/docker/1111111111111111111111111111111111111111111111111111111111111111/docker/ID", "", "ID", "", ""),
            // podman
            ("/libpod_parent/libpod-ID", "", "ID", "", ""),
            ("/machine.slice/libpod-ID.scope/container", "libpod-ID.scope", "ID", "", ""),
            ("/machine.slice/libpod-conmon-ID.scope", "libpod-conmon-ID.scope", "", "", ""),
            // containerd
            ("/default/ID", "", "ID", "", ""),
            ("/system.slice/nerdctl-ID.scope", "nerdctl-ID.scope", "ID", "", ""),
            // kubelet, both drivers, with containerd, cri-o and docker
            ("/kubepods/podPOD/ID", "", "ID", "POD", ""),
            ("/kubepods/burstable/podPOD/crio-ID", "", "ID", "POD", ""),
            (
                "/kubepods/besteffort/pod0123456789abcdef0123456789abcdef/ID",
                "",
                "ID",
                "0123456789abcdef0123456789abcdef",
                "",
            ),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podP_O_D.slice/cri-containerd-ID.scope",
                "cri-containerd-ID.scope",
                "ID",
                "POD",
                "",
            ),
            ("/kubepods.slice/kubepods-podP_O_D.slice/crio-ID.scope", "crio-ID.scope", "ID", "POD", ""),
            ("/kubepods.slice/kubepods-podP_O_D.slice/crio-conmon-ID.scope", "crio-conmon-ID.scope", "", "POD", ""),
            ("/kubelet/kubepods/podPOD/ID", "", "ID", "POD", ""),
            (
                "/system.slice/containerd.service/kubepods-podP_O_D.slice:cri-containerd:ID",
                "containerd.service",
                "ID",
                "",
                "",
            ),
            // SLURM, v1 and v2
            ("/slurm/uid_1000/job_17/step_0/task_0", "", "", "", "slurm:17.0"),
            ("/slurm_node1/uid_1000/job_17/step_batch", "", "", "", "slurm:17.batch"),
            ("/slurm/uid_1000/job_17", "", "", "", "slurm:17"),
            (
                "/system.slice/slurmstepd.scope/job_17/step_extern/user/task_0",
                "slurmstepd.scope",
                "",
                "",
                "slurm:17.extern",
            ),
            ("/system.slice/node1_slurmstepd.scope/job_17/step_3/user", "node1_slurmstepd.scope", "", "", "slurm:17.3"),
            ("/system.slice/job_17/step_0", "system.slice", "", "", ""),
            // HTCondor, v1 and v2
            ("/htcondor/condor_var_lib_condor_execute_slot1_2@node", "", "", "", "condor:slot1_2@node"),
            (
                "/system.slice/condor.service/condor_slot1@node.scope",
                "condor_slot1@node.scope",
                "",
                "",
                "condor:slot1@node",
            ),
            // not quite
            ("/docker/4d2c", "", "", "", ""),
            ("/pods/podinfo", "", "", "", ""),
            ("/slurm/uid_1000/job_x", "", "", "", ""),
        ] {
            assert_eq!(of(path), [unit, container, pod, job], "{path}");
        }
    }
}
